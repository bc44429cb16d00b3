import { OddswireError } from '../src/domain/values/errors.ts';
import { isStorableText } from '../src/domain/values/text.ts';

const MIN_LENGTH = 12;
const MAX_LENGTH = 1_024;
const [BACKSPACE, DELETE, INTERRUPT, END_OF_INPUT] = ['\b', '\u007f', '\u0003', '\u0004'];

/** The standard input of a command: a terminal, or a stream. */
interface PasswordSource extends AsyncIterable<Buffer | string> {
  isTTY?: boolean;
  setRawMode?(isRaw: boolean): unknown;
}

/**
 * Reads a new password: in a terminal twice and without an echo, otherwise the first line of the stream. Arguments and variables would
 * show it to other users of the machine. @throws OddswireError for an unusable password
 */
export async function readNewPassword(
  source: PasswordSource = process.stdin,
  prompt: (text: string) => void = (text) => void process.stderr.write(text),
): Promise<string> {
  const password = source.isTTY ? await askTwice(source, prompt) : await readLine(source);
  if (password.length < MIN_LENGTH || password.length > MAX_LENGTH) {
    throw new OddswireError('bad_password', `a password has ${MIN_LENGTH} to ${MAX_LENGTH} characters`);
  }
  if (/\p{Cc}/u.test(password) || !isStorableText(password)) {
    throw new OddswireError('bad_password', 'a password has no control characters');
  }
  return password;
}

async function readLine(source: PasswordSource): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of source) chunks.push(Buffer.from(chunk));
  const [line = ''] = Buffer.concat(chunks).toString('utf8').split(/\r?\n/);
  return line;
}

async function askTwice(source: PasswordSource, prompt: (text: string) => void): Promise<string> {
  source.setRawMode?.(true);
  try {
    const keys = keysOf(source);
    const first = await ask(keys, 'Password: ', prompt);
    const second = await ask(keys, 'The same again: ', prompt);
    if (first !== second) throw new OddswireError('bad_password', 'the two passwords differ');
    return first;
  } finally {
    source.setRawMode?.(false);
  }
}

async function* keysOf(source: PasswordSource): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of source) yield* decoder.decode(Buffer.from(chunk), { stream: true });
}

async function ask(keys: AsyncGenerator<string>, label: string, prompt: (text: string) => void): Promise<string> {
  prompt(label);
  const typed: string[] = [];
  for (;;) {
    const { value: key = END_OF_INPUT } = await keys.next();
    if (key === INTERRUPT || key === END_OF_INPUT) {
      prompt('\n');
      throw new OddswireError('no_password', 'no password was entered');
    }
    if (key === '\r' || key === '\n') break;
    if (key === BACKSPACE || key === DELETE) typed.pop();
    else typed.push(key);
  }
  prompt('\n');
  return typed.join('');
}
