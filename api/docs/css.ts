/** The style of all pages below /docs, light and dark. The colours are those of the operator pages. */
export const DOCS_CSS = `:root {
  color-scheme: light dark;
  --paper: #fbfbfa; --card: #fff; --line: #e4e3df; --ink: #1c1b19; --ink-soft: #5f5c55; --accent: #1f4fd8; --code: #efeeea;
}
@media (prefers-color-scheme: dark) {
  :root { --paper: #131415; --card: #1b1c1e; --line: #2d2f32; --ink: #ecebe8; --ink-soft: #a5a29b; --accent: #8fb0ff; --code: #292b2e; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
a { color: var(--accent); text-underline-offset: 0.15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
main:focus { outline: none; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 8px; top: 8px; padding: 8px 12px; background: var(--card); }
.bar {
  display: flex; flex-wrap: wrap; align-items: center; gap: 4px 28px; padding: 12px 24px;
  background: var(--card); border-bottom: 1px solid var(--line); font-size: 15px;
}
.bar .brand { color: var(--ink); font-weight: 650; text-decoration: none; }
.bar nav { display: flex; flex-wrap: wrap; gap: 4px 20px; }
.bar nav a { padding: 6px 0; color: var(--ink-soft); text-decoration: none; border-bottom: 2px solid transparent; }
.bar nav a:hover { color: var(--ink); }
.bar nav a[aria-current] { color: var(--ink); font-weight: 600; border-color: var(--accent); }
.bar .files { margin-left: auto; }
main { max-width: 860px; margin: 0 auto; padding: 24px 24px 80px; overflow-wrap: break-word; }
h1, h2, h3 { line-height: 1.25; letter-spacing: -0.01em; }
h1 { margin: 8px 0 16px; font-size: 1.8rem; }
h2 { margin: 44px 0 12px; padding-top: 12px; border-top: 1px solid var(--line); font-size: 1.3rem; }
h3 { margin: 28px 0 8px; font-size: 1.05rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace; font-size: 0.87em; }
code { padding: 1px 4px; background: var(--code); border-radius: 4px; overflow-wrap: anywhere; }
pre { padding: 14px; overflow-x: auto; background: var(--code); border-radius: 8px; line-height: 1.5; }
pre code { padding: 0; background: none; overflow-wrap: normal; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 8px; }
.scroll { overflow-x: auto; margin: 16px 0; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
table { width: 100%; border-collapse: collapse; font-size: 0.93em; }
th, td { padding: 8px 12px; text-align: left; vertical-align: top; }
th { color: var(--ink-soft); font-weight: 500; }
tr + tr > *, tbody > tr > * { border-top: 1px solid var(--line); }
blockquote { margin: 16px 0; padding-left: 16px; border-left: 3px solid var(--line); color: var(--ink-soft); }
summary { cursor: pointer; }
.crumb { margin: 0; font-size: 0.9em; }
.beside { display: grid; grid-template-columns: 290px minmax(0, 1fr); max-width: 1240px; margin: 0 auto; }
.beside > main { width: 100%; }
aside { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 24px 0 24px 24px; font-size: 14px; }
aside ul { margin: 0 0 12px; padding: 0; list-style: none; }
aside .tag { margin: 12px 0 4px; font-weight: 600; }
aside summary { padding: 8px 0; font-weight: 600; }
aside nav a { display: block; padding: 3px 0; color: var(--ink-soft); text-decoration: none; overflow-wrap: anywhere; }
aside .tag a { color: var(--ink); }
aside nav a:hover { color: var(--ink); text-decoration: underline; }
label { display: block; font-weight: 500; font-size: 14px; }
input, select, textarea {
  display: block; width: 100%; min-height: 44px; margin: 4px 0 12px; padding: 8px 10px; font: inherit; color: var(--ink);
  background: var(--card); border: 1px solid var(--ink-soft); border-radius: 6px;
}
textarea { font-family: ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace; font-size: 13px; }
button {
  min-width: 44px; min-height: 44px; padding: 8px 16px; font: inherit; color: var(--ink); background: var(--card);
  border: 1px solid var(--ink-soft); border-radius: 6px; cursor: pointer;
}
.key { margin: 24px 0; padding: 16px; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.key p { margin: 0; color: var(--ink-soft); font-size: 14px; }
.key, .search, .try { display: none; }
.scripts .key, .scripts .search, .scripts .try { display: block; }
.entry { border-top: 1px solid var(--line); }
.entry > summary { padding: 10px 0; }
.entry > summary h3 { display: inline; margin: 0; font-size: 1em; font-weight: 500; overflow-wrap: anywhere; }
.entry > summary .summary { color: var(--ink-soft); }
.entry[open] { padding-bottom: 24px; }
.entry[open] > summary h3 { font-size: 1.1rem; }
.entry h4 { margin: 20px 0 4px; font-size: 0.95rem; }
.entry details { margin: 8px 0; }
.entry details > summary { padding: 6px 0; }
.method { color: var(--ink-soft); font-size: 0.8em; font-weight: 600; letter-spacing: 0.04em; }
.type, .fields dt .type { color: var(--ink-soft); font-size: 0.9em; }
.required { padding: 1px 6px; border: 1px solid var(--ink-soft); border-radius: 10px; font-size: 0.8em; }
.fields { margin: 0; }
.fields dt { margin-top: 10px; }
.fields dd { margin: 0 0 0 16px; color: var(--ink-soft); }
.fields .form { color: var(--ink); font-weight: 600; }
.answer:not(:empty) { margin-top: 12px; }
.answer pre { max-height: 60vh; }
.block-head { display: flex; align-items: center; justify-content: space-between; gap: 12px; }
@media (max-width: 900px) {
  .beside { display: block; }
  aside { position: static; max-height: none; padding: 16px 24px 0; }
  aside nav a { display: flex; align-items: center; gap: 6px; min-height: 44px; }
}
@media (max-width: 640px) { aside { padding-left: 16px; padding-right: 16px; } }
@media (max-width: 640px) { .bar, main { padding-left: 16px; padding-right: 16px; } .bar .files { margin-left: 0; }
  .bar nav a { padding-block: 11px; } }
`;
