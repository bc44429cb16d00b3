// Adds the integrity hashes that package-lock.json lacks, from the registry of npm. A registry that does not serve the packages of other
// platforms leaves them out.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const FILE = 'package-lock.json';
const lock = JSON.parse(readFileSync(FILE, 'utf8'));
let missing = 0;
for (const [path, entry] of Object.entries(lock.packages)) {
  if (path === '' || entry.link || entry.integrity) continue;
  const { version, ...rest } = entry;
  const name = path.split('node_modules/').at(-1);
  const integrity = integrityOf(`${name}@${version}`);
  if (integrity === undefined) missing += 1;
  else lock.packages[path] = { version, integrity, ...rest };
}
writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`);
if (missing > 0) {
  process.stderr.write(`the registry has no hash of ${missing} packages\n`);
  process.exitCode = 1;
}

function integrityOf(spec) {
  try {
    const text = execFileSync('npm', ['view', spec, 'dist.integrity'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return text.trim() || undefined;
  } catch {
    return undefined;
  }
}
