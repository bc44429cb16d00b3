// Builds the programs into dist with rolldown.config.mjs, unless dist contains the build of these sources, packages and version of Node.
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');
const EXECUTABLE = 'oddswire.js';
/** `{node, sources, built}`: the version of Node, and the state of each source and of each built file. */
const STAMP = join(DIST, 'build.json');
/** Builds that did not end have folders of this name, with the id of their process. */
const WORK = '.build-';
/** They decide about the build beside its sources. Packages are not compared file by file. */
const SETTINGS = [
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'rolldown.config.mjs', 'scripts/bundle.mjs'],
  'node_modules/.package-lock.json',
];

const reason = reasonToBuild();
if (reason !== undefined) await build(reason);

/** Undefined when the build is current. */
function reasonToBuild() {
  const stamp = readStamp();
  if (stamp === undefined) return 'there is no complete build';
  if (stamp.node !== process.version) return `Node ${process.version} replaces ${stamp.node}`;
  const replaced = Object.entries(stamp.built).find(([file, identity]) => identityOf(join(DIST, file)) !== identity);
  if (replaced !== undefined) return `dist/${replaced[0]} is not of the last build`;
  const changed = Object.entries(stamp.sources).find(([path, source]) => !isSame(path, source));
  return changed === undefined ? undefined : `${changed[0]} changed`;
}

function readStamp() {
  try {
    const { node, sources, built } = JSON.parse(readFileSync(STAMP, 'utf8'));
    return typeof sources === 'object' && typeof built === 'object' ? { node, sources, built } : undefined;
  } catch {
    return undefined;
  }
}

/** A file that was written again with the same text, such as by a checkout, is the same. */
function isSame(path, { state, sha256 }) {
  const now = stateOf(path);
  return now === state || (now !== null && sha256 !== null && sha256Of(path) === sha256);
}

async function build(why) {
  const progress = startProgress(why);
  rmSync(STAMP, { force: true });
  mkdirSync(DIST, { recursive: true });
  removeAbandoned();
  // Files enter dist by a rename, complete: a command that runs beside this one, or a build that is cut off, leaves no half of a file.
  const work = join(DIST, `${WORK}${process.pid}`);
  const [{ rolldown }, { default: config }] = await Promise.all([import('rolldown'), import('../rolldown.config.mjs')]);
  const { output: options, ...input } = config;
  const settings = new Map(SETTINGS.map((path) => [path, sourceOf(path)]));
  const startMs = Date.now();
  const bundle = await rolldown({ ...input, cwd: ROOT });
  const { output } = await bundle.write({ ...options, dir: work });
  const read = (await bundle.watchFiles).map((path) => relative(ROOT, path));
  await bundle.close();
  const sources = read.filter((path) => !path.includes(`node_modules${sep}`));
  // The build may contain an earlier state of a source that changed meanwhile, so the next command builds again.
  const isStable = ![...sources, ...SETTINGS].some((path) => changedMs(path) >= startMs);
  const states = Object.fromEntries([...settings, ...sources.map((path) => [path, sourceOf(path)])]);
  chmodSync(join(work, 'bin', EXECUTABLE), 0o755);
  const files = output.map(({ fileName }) => fileName);
  // Not the state after the rename: a build of other sources that ends at the same time may have replaced the file by then.
  const built = Object.fromEntries(files.map((file) => [file, identityOf(join(work, file))]));
  for (const file of files) {
    mkdirSync(dirname(join(DIST, file)), { recursive: true });
    renameSync(join(work, file), join(DIST, file));
  }
  removeOthers(join(DIST, 'bin'));
  if (isStable) {
    writeFileSync(join(work, 'build.json'), JSON.stringify({ node: process.version, sources: states, built }));
    renameSync(join(work, 'build.json'), STAMP);
  }
  rmSync(work, { recursive: true });
  progress.end(files.length);
}

/** One line, which a terminal shows from the start of the build. */
function startProgress(why) {
  const { stderr } = process;
  const startMs = performance.now();
  const show = () => stderr.write(`\r\x1b[Kbuilding oddswire, because ${why}: ${secondsSince(startMs)} s`);
  if (stderr.isTTY) show();
  const timer = stderr.isTTY ? setInterval(show, 1_000) : undefined;
  return {
    end(files) {
      clearInterval(timer);
      const start = stderr.isTTY ? '\r\x1b[K' : '';
      stderr.write(`${start}built oddswire in ${secondsSince(startMs)} s, because ${why}: ${files} files\n`);
    },
  };
}

function secondsSince(startMs) {
  return ((performance.now() - startMs) / 1_000).toFixed(1);
}

/** Removes the folders of builds that did not end. */
function removeAbandoned() {
  for (const name of readdirSync(DIST)) {
    if (name.startsWith(WORK) && !isAlive(Number(name.slice(WORK.length))))
      rmSync(join(DIST, name), { recursive: true });
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Each other file would end without a word when it is run. */
function removeOthers(folder) {
  for (const name of readdirSync(folder)) if (name !== EXECUTABLE) rmSync(join(folder, name), { recursive: true });
}

function sourceOf(path) {
  const state = stateOf(path);
  return { state, sha256: state === null ? null : sha256Of(path) };
}

function sha256Of(path) {
  return createHash('sha256')
    .update(readFileSync(join(ROOT, path)))
    .digest('hex');
}

/** Differs after each write, also after two within the same tick of the clock: a write changes the time of the change of the inode. */
function stateOf(path) {
  const found = statSync(join(ROOT, path), { throwIfNoEntry: false, bigint: true });
  return found === undefined ? null : `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

/** The same before and after a rename. */
function identityOf(file) {
  const found = statSync(file, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? null : `${found.ino} ${found.size} ${found.mtimeNs}`;
}

function changedMs(path) {
  const found = statSync(join(ROOT, path), { throwIfNoEntry: false });
  return found === undefined ? 0 : Math.max(found.mtimeMs, found.ctimeMs);
}
