// The view of relations: which sources use which services, as a Sankey diagram, and which hosts
// talk to which, as a matrix. Both are of the largest conversations.

import { sankey, sankeyLinkHorizontal, type SankeyGraph, type SankeyLink, type SankeyNode } from "d3-sankey";
import { COLORS, OTHER_COLOR } from "./chart";
import { clean, h, put, redraw, s } from "./dom";
import { short } from "./format";
import { group, type Conversation, type Dimension } from "./model";
import { range, rangeControls } from "./range";
import type { State } from "./state";
import { conversationsLack, filters, uncounted, value } from "./traffic";

const SOURCES = 10;
const SERVICES = 8;
const HOSTS = 12;
const OTHER = "other";

interface Place {
  id: string;
  name: string;
  dimension?: Dimension;
}

type Extra = Record<never, never>;
type Node = SankeyNode<Place, Extra>;
type Link = SankeyLink<Place, Extra>;

/** The names with most bytes; all others are one. */
function leading(all: Conversation[], key: (one: Conversation) => string, n: number): Set<string> {
  const sorted = [...group(all, key)].sort((a, b) => b[1].bytes - a[1].bytes || (a[0] < b[0] ? -1 : 1));
  return new Set(sorted.slice(0, n).map(([name]) => name));
}

export class RelationsView {
  readonly title = "Relations";
  private readonly head = h("div");
  private readonly diagram = h("div", { class: "sankey" });
  private readonly matrix = h("div");
  private built = false;

  constructor(private readonly state: State) {}

  show(host: HTMLElement): void {
    this.built = this.state.countsTraffic;
    if (this.built) put(host, h("h2", {}, "Sources to services"), this.head, this.diagram, h("h2", {}, "Hosts to hosts"), this.matrix);
    else put(host, uncounted(this.state));
    this.update(host);
  }

  update(host: HTMLElement): void {
    if (this.built !== this.state.countsTraffic) return this.show(host);
    if (!this.built) return;
    const { state } = this;
    const [from, to] = range(state);
    const summary = state.model.summary(from, to, state.link.filters);
    const { conversations } = summary;
    const lacks = conversationsLack(summary);
    const note = lacks.length > 0 ? lacks.join(" ") : "All conversations.";
    redraw(this.head, () => put(this.head, h("div", { class: "controls" }, ...rangeControls(state)), filters(state), h("p", { class: "quiet" }, note)));
    redraw(this.diagram, () => put(this.diagram, this.sankey(conversations), this.flows(conversations)));
    redraw(this.matrix, () => put(this.matrix, this.hosts(conversations)));
  }

  private sankey(all: Conversation[]): SVGElement | HTMLElement {
    if (all.length === 0) return h("p", { class: "quiet" }, "No packets so far.");
    const { nodes, links } = this.graph(all);
    const width = Math.max(320, Math.min(1500, this.diagram.clientWidth || 700));
    const height = Math.max(200, 36 * Math.max(...[0, 1].map((side) => nodes.filter((one) => one.id.startsWith(`${side} `)).length)));
    const layout = sankey<Place, Extra>().nodeId((one) => one.id).nodeWidth(12).nodePadding(16)
      .nodeSort((a, b) => Number(a.name === OTHER) - Number(b.name === OTHER) || (b.value ?? 0) - (a.value ?? 0))
      .extent([[1, 6], [width - 1, height - 6]]);
    const graph: SankeyGraph<Place, Extra> = layout({ nodes, links });
    const path = sankeyLinkHorizontal<Place, Extra>();
    const color = new Map(graph.nodes.filter((one) => one.id.startsWith("1 ")).map((one, i) =>
      [one.id, one.name === OTHER ? OTHER_COLOR : COLORS[i % COLORS.length] ?? OTHER_COLOR]));
    const curves = graph.links.map((link) => {
      const [source, target] = [link.source as Node, link.target as Node];
      const title = `${clean(source.name)} to ${clean(target.name)}: ${short(link.value)}B`;
      return s("path", {
        d: path(link) ?? "", fill: "none", stroke: color.get(target.id) ?? OTHER_COLOR,
        "stroke-opacity": "0.45", "stroke-width": String(Math.max(1, link.width ?? 1)),
      }, s("title", {}, title));
    });
    const boxes = graph.nodes.flatMap((node) => this.box(node, width, color.get(node.id)));
    return s("svg", {
      viewBox: `0 0 ${width} ${height}`, width: String(width), height: String(height), role: "img",
      "aria-label": "Sources to services by bytes; the table has the numbers",
    }, ...curves, ...boxes);
  }

  /** Names of both sides differ, so that there is no circle. */
  private graph(all: Conversation[]): { nodes: Node[]; links: Link[] } {
    const sources = leading(all, (one) => one.src, SOURCES);
    const services = leading(all, (one) => one.service, SERVICES);
    const [nodes, links] = [new Map<string, Node>(), new Map<string, Link>()];
    const node = (side: 0 | 1, name: string): string => {
      const id = `${side} ${name}`;
      if (!nodes.has(id)) nodes.set(id, { id, name, dimension: side === 0 ? "host" : "service" });
      return id;
    };
    for (const one of all) {
      const source = node(0, sources.has(one.src) ? one.src : OTHER);
      const target = node(1, services.has(one.service) ? one.service : OTHER);
      const key = `${source} ${target}`;
      const link = links.get(key);
      if (link) link.value += one.bytes;
      else links.set(key, { source, target, value: one.bytes });
    }
    return { nodes: [...nodes.values()], links: [...links.values()] };
  }

  private box(node: Node, width: number, color: string | undefined): SVGElement[] {
    const { x0 = 0, x1 = 0, y0 = 0, y1 = 0 } = node;
    const left = x0 < width / 2;
    const text = s("text", {
      x: String(left ? x1 + 6 : x0 - 6), y: String((y0 + y1) / 2), dy: "0.35em", "text-anchor": left ? "start" : "end",
    }, `${clean(node.name)}  ${short(node.value ?? 0)}B`);
    const rect = s("rect", {
      x: String(x0), y: String(y0), width: String(x1 - x0), height: String(Math.max(1, y1 - y0)), class: "box",
      fill: color ?? "currentColor",
    });
    return [rect, text];
  }

  /** The numbers of the diagram. */
  private flows(all: Conversation[]): HTMLElement {
    const { nodes, links } = this.graph(all);
    const names = new Map(nodes.map((node) => [node.id, node]));
    const sorted = links.sort((a, b) => b.value - a.value).slice(0, 30);
    const shown = (node: Node | undefined) => {
      if (!node || node.name === OTHER || !node.dimension) return node?.name ?? "";
      return value(this.state, node.dimension, node.name);
    };
    const rows = sorted.map((link) => h("tr", {},
      h("td", {}, shown(names.get(String(link.source)))), h("td", {}, shown(names.get(String(link.target)))),
      h("td", { class: "number" }, `${short(link.value)}B`)));
    const head = h("tr", {}, ...["source", "service", "bytes"].map((text) => h("th", { scope: "col" }, text)));
    return h("details", {}, h("summary", { "data-key": "numbers" }, "Numbers of the diagram"),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the diagram" },
        h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows))));
  }

  /** Bytes from hosts (rows) to hosts (columns); the darker the more. */
  private hosts(all: Conversation[]): HTMLElement {
    const rows = [...leading(all, (one) => one.src, HOSTS), OTHER];
    const columns = [...leading(all, (one) => one.dst, HOSTS), OTHER];
    const sums = new Map<string, number>();
    let most = 1;
    for (const one of all) {
      const src = rows.includes(one.src) ? one.src : OTHER;
      const dst = columns.includes(one.dst) ? one.dst : OTHER;
      const sum = (sums.get(`${src} ${dst}`) ?? 0) + one.bytes;
      sums.set(`${src} ${dst}`, sum);
      most = Math.max(most, sum);
    }
    const name = (host: string) => (host === OTHER ? OTHER : value(this.state, "host", host));
    const head = h("tr", {}, h("th", { scope: "col" }, "from, to"), ...columns.map((one) => h("th", { scope: "col" }, name(one))));
    const body = rows.map((src) => h("tr", {}, h("th", { scope: "row" }, name(src)), ...columns.map((dst) => {
      const bytes = sums.get(`${src} ${dst}`) ?? 0;
      const cell = h("td", { class: "number heat" }, bytes > 0 ? `${short(bytes)}B` : "");
      // Shares of six decades of the largest cell, as a share of the accent colour.
      const share = bytes > 0 ? Math.max(0.08, 1 + Math.log10(bytes / most) / 6) : 0;
      cell.style.setProperty("--share", `${Math.round(40 * share)}%`);
      return cell;
    })));
    return h("div", { class: "scroll matrix", tabindex: "0", role: "region", "aria-label": "Bytes from hosts to hosts", "data-key": "matrix" },
      h("table", {}, h("thead", {}, head), h("tbody", {}, ...body)));
  }
}
