import { configTable } from '../src/config/config.ts';

/** `npm run config`: every environment variable, its default and its effect. */
const rows = [{ name: 'variable', default: 'default', meaning: 'meaning' }, ...configTable()];
const width = {
  name: Math.max(...rows.map(({ name }) => name.length)),
  default: Math.max(...rows.map((row) => row.default.length)),
};
for (const row of rows) {
  console.log(`${row.name.padEnd(width.name)}  ${row.default.padEnd(width.default)}  ${row.meaning}`);
}
