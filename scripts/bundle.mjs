// Builds the programs into dist with rolldown.config.mjs, unless dist contains the build of these sources and packages.
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const EXECUTABLE = 'oddswire.js';
/** The state of each source and of each built file. */
const STAMP = join(ROOT, 'dist', 'build.json');
/** They decide about the build beside its sources. Packages are not compared file by file. */
const SETTINGS = ['package.json', 'rolldown.config.mjs', 'scripts/bundle.mjs', 'node_modules/.package-lock.json'];

if (!isCurrent()) await build();

function isCurrent() {
  try {
    const states = JSON.parse(readFileSync(STAMP, 'utf8'));
    return Object.entries(states).every(([path, state]) => stateOf(path) === state);
  } catch {
    // No build, or the stamp of a build that was cut off.
    return false;
  }
}

async function build() {
  const startMs = Date.now();
  rmSync(STAMP, { force: true });
  const [{ rolldown }, { default: config }] = await Promise.all([import('rolldown'), import('../rolldown.config.mjs')]);
  const { output: options, ...input } = config;
  const bundle = await rolldown({ ...input, cwd: ROOT });
  const { output } = await bundle.write(options);
  const read = (await bundle.watchFiles).map((path) => relative(ROOT, path));
  await bundle.close();
  removeOthers(join(ROOT, 'dist', 'bin'));
  chmodSync(join(ROOT, 'dist', 'bin', EXECUTABLE), 0o755);
  const sources = [...SETTINGS, ...read.filter((path) => !path.includes(`node_modules${sep}`))];
  // The build may contain an earlier state of a source that changed meanwhile.
  if (sources.some((path) => changedMs(path) >= startMs)) return;
  const built = output.map(({ fileName }) => join('dist', fileName));
  writeFileSync(STAMP, JSON.stringify(Object.fromEntries([...sources, ...built].map((path) => [path, stateOf(path)]))));
}

/** Each other file would end without a word when it is run. */
function removeOthers(folder) {
  for (const name of readdirSync(folder)) if (name !== EXECUTABLE) rmSync(join(folder, name), { recursive: true });
}

function stateOf(path) {
  const found = statSync(join(ROOT, path), { throwIfNoEntry: false });
  return found === undefined ? null : `${found.size} ${found.mtimeMs}`;
}

function changedMs(path) {
  return statSync(join(ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
