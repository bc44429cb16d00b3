import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** Every page of the repository that a reader opens, as paths from the root. `docs/spec.md` is the user's own text. */
export const PAGES: readonly string[] = [
  'README.md',
  'clients/typescript/README.md',
  'clients/cli/README.md',
  'clients/python/README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true })
    .map((name) => `docs/${String(name).replaceAll('\\', '/')}`)
    .filter((name) => name.endsWith('.md'))
    .sort(),
];

/** A fenced block: the text between its fences, with a line break at the end. */
export interface Snippet {
  readonly page: string;
  /** The line of the opening fence, from 1. */
  readonly line: number;
  /** The text behind the opening fence, such as `sh no-test`. */
  readonly info: string;
  readonly text: string;
}

export function pageText(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** @throws when a fence of the page stays open. */
export function snippetsOf(page: string): Snippet[] {
  const snippets: Snippet[] = [];
  let open: { line: number; info: string; lines: string[] } | undefined;
  for (const [index, line] of pageText(page).split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (fence === null) open?.lines.push(line);
    else if (open === undefined) open = { line: index + 1, info: (fence[1] ?? '').trim(), lines: [] };
    else {
      snippets.push({ page, line: open.line, info: open.info, text: `${open.lines.join('\n')}\n` });
      open = undefined;
    }
  }
  if (open) throw new Error(`${page}:${open.line}: the block has no end`);
  return snippets;
}

/** The page without its fenced blocks, with as many lines as before. */
export function proseOf(page: string): string {
  return pageText(page).replaceAll(/^```[\s\S]*?^```$/gm, (block) => block.replaceAll(/[^\n]/g, ''));
}

/** The anchors of a page's headings, as GitHub makes them: a repeated one gets a number. */
export function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of proseOf(page).matchAll(/^#{1,6} (.*)$/gm)) {
    const base = heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-');
    let anchor = base;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${base}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}
