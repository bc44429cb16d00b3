const LINE_END = /<\/(?:p|div|li|h[1-6])\s*>|<br\s*\/?>/gi;
const TAG = /<\/?[a-z][^<>]{0,2000}>/gi;
const ENTITY = /&(?:amp|lt|gt|quot|nbsp|#39);/g;
const CHARACTERS: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&nbsp;': ' ',
  '&#39;': "'",
};

/** The text of the HTML that the venue's editor makes: paragraphs become lines, links keep their words only. */
export function textOfHtml(html: string): string {
  return html
    .replace(LINE_END, '\n')
    .replace(TAG, '')
    .replace(ENTITY, (entity) => CHARACTERS[entity] ?? entity)
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}
