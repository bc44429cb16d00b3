/**
 * The URL of a text, null for other texts. `URL.canParse` cannot replace it: in Node 20, a process that calls it often rejects every URL
 * with a character such as `ü`.
 */
export function parseUrl(text: string, base?: string): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}

/** Whether a text is an http or https address, as pages may link it. */
export function isWebAddress(text: string | null | undefined): text is string {
  const protocol = parseUrl(text ?? '')?.protocol;
  return protocol === 'https:' || protocol === 'http:';
}
