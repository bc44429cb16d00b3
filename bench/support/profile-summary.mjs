import { readFileSync } from 'node:fs';

const IDLE = new Set(['(idle)', '(root)']);

/** The place of a frame's code: its package or our folder, and its file. */
function placeOf({ functionName, url }) {
  // `(program)` is native code that V8 does not analyse: system calls, TLS, parsing.
  if (functionName === '(garbage collector)' || functionName === '(program)') {
    return { group: functionName, file: functionName };
  }
  if (url === '' || url.startsWith('node:')) return { group: 'node', file: url || '(native)' };
  const packaged = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(.*)$/.exec(url);
  if (packaged) return { group: packaged[1], file: `${packaged[1]}/${packaged[2]}` };
  const file = url.replace(/^file:\/\//, '').replace(`${process.cwd()}/`, '');
  return {
    group: `oddswire ${file
      .replace(/^dist\//, '')
      .split('/')
      .slice(0, -1)
      .join('/')}`,
    file,
  };
}

const add = (sums, key, micros) => sums.set(key, (sums.get(key) ?? 0) + micros);

/**
 * Self time of a .cpuprofile, microseconds: total, by package or folder, by file, and by function.
 * Idle time is excluded.
 */
export function summarize(profile) {
  const frames = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const sums = { groups: new Map(), files: new Map(), functions: new Map() };
  let [busyMicros, idleMicros] = [0, 0];
  profile.samples.forEach((id, index) => {
    const frame = frames.get(id);
    const micros = profile.timeDeltas[index];
    if (IDLE.has(frame.functionName)) {
      idleMicros += micros;
      return;
    }
    busyMicros += micros;
    const { group, file } = placeOf(frame);
    add(sums.groups, group, micros);
    add(sums.files, file, micros);
    add(sums.functions, `${frame.functionName || '(anonymous)'} ${file}:${frame.lineNumber + 1}`, micros);
  });
  return { busyMicros, idleMicros, ...sums };
}

function top(title, sums, busyMicros, count) {
  const rows = [...sums].sort(([, a], [, b]) => b - a).slice(0, count);
  const lines = rows.map(([name, micros]) => {
    const share = ((100 * micros) / busyMicros).toFixed(1).padStart(5);
    return `${share} % ${(micros / 1_000).toFixed(0).padStart(7)} ms  ${name}`;
  });
  return [`  by ${title}`, ...lines];
}

/** The text of a summary: the packages, files and functions with the most self time. */
export function summaryOf(file, count = 25) {
  const { busyMicros, idleMicros, groups, files, functions } = summarize(JSON.parse(readFileSync(file, 'utf8')));
  return [
    `${file}: ${(busyMicros / 1_000).toFixed(0)} ms busy, ${(idleMicros / 1_000).toFixed(0)} ms idle`,
    ...top('package or folder', groups, busyMicros, 15),
    ...top('file', files, busyMicros, 15),
    ...top('function', functions, busyMicros, count),
  ].join('\n');
}
