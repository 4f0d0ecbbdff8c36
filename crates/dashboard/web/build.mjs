// Bundles the page into dist/. Run by build.rs.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";

await mkdir("dist", { recursive: true });
await build({
  entryPoints: { app: "src/main.ts" },
  outdir: "dist",
  bundle: true,
  // The editor is loaded where it is needed.
  splitting: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  legalComments: "eof",
  loader: { ".weir": "text" },
  entryNames: "[name]",
  chunkNames: "[name]-[hash]",
  logLevel: "warning",
});
await build({
  entryPoints: { style: "style.css" },
  outdir: "dist",
  bundle: true,
  minify: true,
  logLevel: "warning",
});
await copyFile("index.html", "dist/index.html");
