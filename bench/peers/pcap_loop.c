/* The least that a program does which reads a capture through libpcap: counts packets and bytes. */
#include <pcap/pcap.h>
#include <stdio.h>

static unsigned long long packets, bytes;

static void count(u_char *user, const struct pcap_pkthdr *header, const u_char *frame) {
    (void)user;
    (void)frame;
    packets++;
    bytes += header->len;
}

int main(int argc, char **argv) {
    char error[PCAP_ERRBUF_SIZE];
    pcap_t *capture = argc == 2 ? pcap_open_offline(argv[1], error) : NULL;
    if (!capture || pcap_loop(capture, -1, count, NULL) != 0) {
        fprintf(stderr, "usage: pcap_loop CAPTURE\n");
        return 1;
    }
    printf("packets=%llu bytes=%llu\n", packets, bytes);
    return 0;
}
