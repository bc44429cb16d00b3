import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** An answer and the type that its package gives it. */
export interface Claim {
  name: string;
  package: string;
  type: string;
  answer: unknown;
}

const ROOT = resolve('.');
const COMPILER = join(ROOT, 'node_modules/.bin/tsc');
const OPTIONS = {
  module: 'nodenext',
  target: 'es2023',
  types: ['node'],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
};
/** Further fields are allowed, and required ones, types and enumerations stay. */
const LOOSE = `type Loose<T> = T extends readonly (infer U)[] ? Loose<U>[]
  : T extends object ? { [K in keyof T]: Loose<T[K]> } & Record<string, unknown> : T;`;

/**
 * The packages of Kalshi and Limitless describe answers with TypeScript types alone, so the compiler is the judge: each answer is a literal
 * of its type. Returns a line for each fault, with the name of its claim.
 */
export function judge(claims: readonly Claim[]): Promise<string[]> {
  return compile(
    new Map(
      claims.map((claim) => [
        claim.name,
        `import type { ${claim.type} } from '${claim.package}';
${LOOSE}
export const answer: Loose<${claim.type}> = ${JSON.stringify(claim.answer, null, 1)};
`,
      ]),
    ),
  );
}

/** The fields of an object that its type does not have. */
export async function fieldsBeyond(claim: Claim): Promise<string[]> {
  const fields = Object.keys(claim.answer as object);
  const lines = await compile(
    new Map(
      fields.map((field) => [
        field,
        `import type { ${claim.type} } from '${claim.package}';
export const field: keyof ${claim.type} = '${field}';
`,
      ]),
    ),
  );
  return fields.filter((field) => lines.some((line) => line.startsWith(`${field}:`)));
}

/** The fields of an object without which it is not of its type. */
export async function requiredFields(claim: Claim): Promise<string[]> {
  const answer = claim.answer as Record<string, unknown>;
  const lines = await judge(
    Object.keys(answer).map((field) => {
      const { [field]: _, ...rest } = answer;
      return { ...claim, name: field, answer: rest };
    }),
  );
  return Object.keys(answer).filter((field) => lines.some((line) => line.startsWith(`${field}:`)));
}

async function compile(files: ReadonlyMap<string, string>): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'oddswire-contracts-'));
  try {
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, include: ['claims'] }));
    await mkdir(join(folder, 'claims'));
    for (const [name, text] of files) await writeFile(join(folder, 'claims', `${name}.ts`), text);
    return await faultsOf(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** `claims/name.ts(3,7): error TS2741: …` as `name: TS2741: …`. */
async function faultsOf(folder: string): Promise<string[]> {
  const run = promisify(execFile);
  try {
    await run(COMPILER, ['-p', folder, '--pretty', 'false'], { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
    return [];
  } catch (error) {
    const { stdout } = error as { stdout?: string };
    const faults = (stdout ?? '').split(/^claims\//m).filter((text) => text.includes('error TS'));
    // A compiler that does not run has no verdict.
    if (faults.length === 0) throw error;
    return faults.map((text) => text.trim().replace(/^(.*)\.ts\(\d+,\d+\): error /, '$1: '));
  }
}
