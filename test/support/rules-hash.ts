import { createHash } from 'node:crypto';

/** The hash of rules as docs/resolutions.md defines it. */
export function rulesHash({ text, settlementSource }: { text: string; settlementSource?: string | undefined }): string {
  const plain = (words: string) => words.replace(/\s+/g, ' ').trim();
  const hashed = settlementSource === undefined ? plain(text) : `${plain(text)}\n${plain(settlementSource)}`;
  return createHash('sha256').update(hashed).digest('hex');
}
