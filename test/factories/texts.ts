import fc from 'fast-check';

/** Surrogates are no characters of their own. */
const SURROGATES = 0x800;

/** Any character of Unicode. The `binary` unit of fast-check is the same, and needs a second of CPU and a map of them all. */
const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + SURROGATES));

/** Texts of any characters. */
export const anyCharacters = (maxLength?: number) =>
  fc.string({ unit: anyCharacter, ...(maxLength !== undefined && { maxLength }) });
