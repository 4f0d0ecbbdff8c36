/* Runs the program of flow_meter.bpf.c on one frame, again and again, and prints how many
 * nanoseconds that took each time, and how many packets the flow has then:
 * flow_meter OBJECT FRAME REPEAT */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned char frame[65536], key[64], next[64];
	if (argc != 4)
		return 2;
	FILE *file = fopen(argv[2], "rb");
	if (!file)
		return perror(argv[2]), 1;
	size_t length = fread(frame, 1, sizeof frame, file);
	fclose(file);
	struct bpf_object *object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object))
		return fprintf(stderr, "%s can't be loaded\n", argv[1]), 1;
	int program = bpf_program__fd(bpf_object__find_program_by_name(object, "flow_meter"));
	int flows = bpf_object__find_map_fd_by_name(object, "flows");
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = length,
		    .repeat = atoi(argv[3]));
	if (bpf_prog_test_run_opts(program, &options))
		return perror("BPF_PROG_TEST_RUN"), 1;
	int cpus = libbpf_num_possible_cpus();
	unsigned long long packets = 0, (*values)[4] = calloc(cpus, sizeof *values);
	for (void *last = NULL; !bpf_map_get_next_key(flows, last, next); last = key) {
		__builtin_memcpy(key, next, sizeof key);
		if (bpf_map_lookup_elem(flows, key, values))
			return perror("a flow"), 1;
		for (int cpu = 0; cpu < cpus; cpu++)
			packets += values[cpu][0];
	}
	printf("ns=%u returned=%u packets=%llu\n", options.duration, options.retval, packets);
	return 0;
}
