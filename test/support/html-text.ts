/** The text of a part of a page: without tags, with single spaces. */
export function textOf(markup: string): string {
  return markup
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The cells of the table rows of a page. */
export function rowsOf(page: string): string[][] {
  const bodies = [...page.matchAll(/<tbody[^>]*>([\s\S]*?)<\/tbody>/g)].map(([, body = '']) => body);
  const rows = bodies.flatMap((body) => [...body.matchAll(/<tr[^>]*>([\s\S]*?)<\/tr>/g)].map(([, row = '']) => row));
  return rows.map((row) => [...row.matchAll(/<t[hd][^>]*>([\s\S]*?)<\/t[hd]>/g)].map(([, cell = '']) => textOf(cell)));
}

/** The facts of a page by their names. */
export function factsOf(page: string): Record<string, string> {
  const found = page.matchAll(/<dt>([\s\S]*?)<\/dt><dd>([\s\S]*?)<\/dd>/g);
  return Object.fromEntries([...found].map(([, name = '', value = '']) => [textOf(name), textOf(value)]));
}
