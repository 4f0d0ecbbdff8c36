// Numbers, times and protocols as people read them.

const STEPS = ["", "k", "M", "G", "T", "P"];

/** A number with three digits and a letter: 1.23k, 45.6M. */
export function short(n: number): string {
  if (!Number.isFinite(n)) return "";
  let step = 0;
  let x = Math.abs(n);
  while (x >= 999.5 && step < STEPS.length - 1) {
    x /= 1000;
    step += 1;
  }
  const digits = x >= 99.95 || (step === 0 && Number.isInteger(n)) ? 0 : x >= 9.995 ? 1 : 2;
  return `${n < 0 ? "-" : ""}${x.toFixed(digits)}${STEPS[step] ?? ""}`;
}

/** A whole number with thin spaces between thousands. */
export function whole(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A share in per cent. */
export function percent(part: number, all: number): string {
  return all > 0 ? `${((100 * part) / all).toFixed(1)} %` : "";
}

/** A time of UTC, in milliseconds since 1970, to the second or finer where need be. */
export function time(ms: number, fine = false): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return "";
  const text = date.toISOString();
  return fine ? text.slice(11, 23) : text.slice(11, 19);
}

/** A day and a time of UTC. */
export function moment(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 19).replace("T", " ");
}

/** Milliseconds of a time of day, or of a time as in RFC 3339, all UTC where no zone is named; else
 * NaN. A time of day is the latest such one that is not after `near`, or else of that day. */
export function parseTime(text: string, near: number): number {
  const clock = /^(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?$/.exec(text);
  if (clock) {
    const [hours, minutes, seconds] = [Number(clock[1]), Number(clock[2]), Number(clock[3] ?? 0)];
    if (hours > 23 || minutes > 59 || seconds >= 60) return NaN;
    const ofDay = ((hours * 60 + minutes) * 60 + seconds) * 1000;
    const today = Math.floor(near / 86400e3) * 86400e3 + ofDay;
    // Ranges around midnight begin on the day before.
    return today - near > 43200e3 ? today - 86400e3 : today;
  }
  const parts = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|z|[+-]\d\d:\d\d)?$/.exec(text);
  return parts ? Date.parse(`${parts[1]}T${parts[2]}${parts[3]?.toUpperCase() ?? "Z"}`) : NaN;
}

/** A length of time. */
export function span(ms: number): string {
  if (ms < 1000) return `${+ms.toFixed(1)} ms`;
  const parts: [number, string][] = [[86400e3, "d"], [3600e3, "h"], [60e3, "min"], [1e3, "s"]];
  for (const [length, unit] of parts) if (ms >= length) return `${+(ms / length).toFixed(1)} ${unit}`;
  return "0 s";
}

const PROTOCOLS: Record<number, string> = {
  0: "hopopt", 1: "icmp", 2: "igmp", 4: "ipip", 6: "tcp", 17: "udp", 41: "ipv6", 47: "gre",
  50: "esp", 51: "ah", 58: "icmp6", 88: "eigrp", 89: "ospf", 103: "pim", 112: "vrrp", 132: "sctp",
};

const TYPES: Record<number, string> = {
  0x0806: "arp", 0x8100: "vlan", 0x8847: "mpls", 0x8863: "pppoe", 0x8864: "pppoe", 0x88cc: "lldp",
  0x888e: "eapol", 0x88e5: "macsec", 0x8809: "lacp",
};

/** The packets of a protocol, by its name here, as a condition of the language. */
export function protocolCondition(name: string): string | undefined {
  const number = (all: Record<number, string>) => Object.entries(all).filter(([, known]) => known === name).map(([n]) => n);
  const [proto] = number(PROTOCOLS);
  if (proto !== undefined) return `ip.proto == ${proto}`;
  const types = number(TYPES);
  if (types.length > 0) return `not ip and (${types.map((type) => `eth.type == ${type}`).join(" or ")})`;
  const [, other, hex] = /^(?:ip (\d+)|(0x[0-9a-f]{4}))$/.exec(name) ?? [];
  if (other !== undefined) return `ip.proto == ${other}`;
  if (hex !== undefined) return `not ip and eth.type == ${hex}`;
  if (name === "802.3") return "not ip and eth.type < 0x0600";
  return name === "other frames" ? "not ip and not exists(eth.type)" : undefined;
}

/** The name of a protocol of IP, or of the type of another frame. */
export function protocol(proto: number | null, type: number | null): string {
  if (proto !== null) return PROTOCOLS[proto] ?? `ip ${proto}`;
  if (type === null || type === 0) return "other frames";
  if (type < 0x0600) return "802.3";
  return TYPES[type] ?? `0x${type.toString(16).padStart(4, "0")}`;
}
