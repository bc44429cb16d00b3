export const MAX_HEADERS = 10;
export const MAX_HEADER_NAME = 64;
export const MAX_HEADER_VALUE = 1_024;
/** Over all names and values. */
const MAX_HEADER_CHARACTERS = 4_096;

/** Names that belong to the connection, to the request of oddswire, or to proxies. Also every name with one of the prefixes below. */
const FORBIDDEN_HEADERS: readonly string[] = [
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'date',
  'expect',
  'forwarded',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
];
const FORBIDDEN_PREFIXES: readonly string[] = ['proxy-', 'sec-', 'webhook-', 'x-forwarded-', 'x-webhook-'];

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;

/** The forms of names and values, for the document. Its patterns have no option for the case. */
export const HEADER_PATTERNS = {
  name: `^(?!(?:${anyCase(FORBIDDEN_HEADERS)})$)(?!${anyCase(FORBIDDEN_PREFIXES)})${NAME.source.slice(1)}`,
  value: VALUE.source,
} as const;

function anyCase(words: readonly string[]): string {
  const letters = (word: string) => word.replaceAll(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`);
  return `(?:${words.map(letters).join('|')})`;
}

/** Header names and their values. */
export type ExtraHeaders = Readonly<Record<string, string>>;

/** A reason against the headers of a webhook; `name` is absent when it concerns all of them. The text repeats no value. */
interface HeaderProblem {
  name?: string;
  message: string;
}

/** The problems of the headers that a client gives for its webhook. */
export function headerProblems(headers: ExtraHeaders): HeaderProblem[] {
  const entries = Object.entries(headers);
  const problems: HeaderProblem[] = [];
  if (entries.length > MAX_HEADERS) problems.push({ message: `must have at most ${MAX_HEADERS} headers` });
  if (entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0) > MAX_HEADER_CHARACTERS) {
    problems.push({ message: `must have at most ${MAX_HEADER_CHARACTERS} characters in total` });
  }
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const message = problemOf(name, value) ?? (seen.has(name.toLowerCase()) ? 'is a name that occurs twice' : null);
    seen.add(name.toLowerCase());
    if (message !== null) problems.push({ name, message });
  }
  return problems;
}

function problemOf(name: string, value: string): string | null {
  if (name.length > MAX_HEADER_NAME || !NAME.test(name)) {
    return `must be a header name of 1 to ${MAX_HEADER_NAME} characters`;
  }
  const lower = name.toLowerCase();
  if (FORBIDDEN_HEADERS.includes(lower) || FORBIDDEN_PREFIXES.some((prefix) => lower.startsWith(prefix))) {
    return 'is a header that a webhook cannot set';
  }
  if (value.length > MAX_HEADER_VALUE || !VALUE.test(value)) {
    return `must have a value of 1 to ${MAX_HEADER_VALUE} printable ASCII characters, without a space at its ends`;
  }
  return null;
}

/** The owner of the sealed headers of a webhook, so that they cannot take the place of its secret. */
export function headersOwner(webhookId: string): string {
  return `${webhookId}:headers`;
}
