import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';

/** The unchanged text of docs/webhooks.md. */
export const PAGE = readFileSync(new URL('../../../docs/webhooks.md', import.meta.url), 'utf8');

/** The code between the fences with exactly this info string, such as `js` or `json test`. Throws when the page has none. */
export function codeBlock(info: string): string {
  const found = PAGE.split(`\n\`\`\`${info}\n`)[1]?.split('\n```')[0];
  if (found === undefined) throw new Error(`docs/webhooks.md has no block ${info}`);
  return `${found}\n`;
}

/** A question to a snippet: are the signatures of this request valid? */
export interface SnippetQuestion {
  readonly secret: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyBase64: string;
  readonly nowSeconds: number;
}

export interface SnippetAnswer {
  readonly body: boolean;
  readonly standard: boolean;
}

interface Language {
  readonly program: string;
  readonly args: readonly string[];
  /** The snippet's own file and its driver: questions on standard input, answers on standard output. */
  readonly files: () => Record<string, string>;
}

export const LANGUAGES: Readonly<Record<'js' | 'python' | 'go', Language>> = {
  js: {
    program: process.execPath,
    args: ['main.mjs'],
    files: () => ({
      'receiver.mjs': codeBlock('js'),
      'main.mjs': `
        import { readFileSync } from 'node:fs';
        import { verifyBody, verifyStandard } from './receiver.mjs';
        const answers = JSON.parse(readFileSync(0, 'utf8')).map(({ secret, headers, bodyBase64, nowSeconds }) => {
          const body = Buffer.from(bodyBase64, 'base64');
          return { body: verifyBody(secret, headers, body), standard: verifyStandard(secret, headers, body, nowSeconds) };
        });
        console.log(JSON.stringify(answers));`,
    }),
  },
  python: {
    program: 'python3',
    args: ['main.py'],
    files: () => ({
      'receiver.py': codeBlock('python'),
      'main.py': [
        'import base64, json, sys',
        'from receiver import verify_body, verify_standard',
        'def answer(q):',
        '    body = base64.b64decode(q["bodyBase64"])',
        '    return {"body": verify_body(q["secret"], q["headers"], body),',
        '            "standard": verify_standard(q["secret"], q["headers"], body, q["nowSeconds"])}',
        'print(json.dumps([answer(q) for q in json.load(sys.stdin)]))',
      ].join('\n'),
    }),
  },
  go: {
    program: 'go',
    args: ['run', '.'],
    files: () => ({
      'go.mod': 'module example.com/receiver\n\ngo 1.19\n',
      'webhooks/webhooks.go': codeBlock('go'),
      'main.go': `package main
import ("encoding/base64"; "encoding/json"; "net/http"; "os"; "time"; "example.com/receiver/webhooks")
type question struct { Secret string; Headers map[string]string; BodyBase64 string; NowSeconds int64 }
type answer struct { Body bool \`json:"body"\`; Standard bool \`json:"standard"\` }
func main() {
  var questions []question
  if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil { panic(err) }
  answers := []answer{}
  for _, q := range questions {
    headers := http.Header{}
    for name, value := range q.Headers { headers.Set(name, value) }
    body, err := base64.StdEncoding.DecodeString(q.BodyBase64)
    if err != nil { panic(err) }
    answers = append(answers, answer{webhooks.VerifyBody(q.Secret, headers, body), webhooks.VerifyStandard(q.Secret, headers, body, time.Unix(q.NowSeconds, 0))})
  }
  if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil { panic(err) }
}
`,
    }),
  },
};

/** Runs the documented snippet of a language with its interpreter. Null when that is not on PATH. */
export async function askSnippet(
  { program, args, files }: Language,
  questions: readonly SnippetQuestion[],
): Promise<SnippetAnswer[] | null> {
  const directory = await mkdtemp(join(tmpdir(), 'oddswire-snippet-'));
  try {
    for (const [name, content] of Object.entries(files())) {
      await mkdir(dirname(join(directory, name)), { recursive: true });
      await writeFile(join(directory, name), content);
    }
    const child = spawn(program, args, { cwd: directory, env: { ...process.env, GOTOOLCHAIN: 'local' } });
    const started = await once(child, 'spawn').then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return false;
        throw error;
      },
    );
    if (!started) return null;
    child.stdin.end(JSON.stringify(questions));
    const [output, errors, [code]] = await Promise.all([
      textOf(child.stdout),
      textOf(child.stderr),
      once(child, 'close'),
    ]);
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${errors}`);
    return JSON.parse(output) as SnippetAnswer[];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
