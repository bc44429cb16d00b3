import { join } from 'node:path';
import { defineConfig } from 'rolldown';

/** One file with the typed client and its packages inside, so that the program installs without packages of others. */
export default defineConfig({
  input: { 'oddswire-cli': 'src/oddswire-cli.ts' },
  platform: 'node',
  // The sources of the client are outside of this package, and need the packages of this one.
  resolve: { modules: ['node_modules', join(import.meta.dirname, 'node_modules')] },
  output: {
    dir: 'dist',
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'parts/[name].js',
    keepNames: true,
    cleanDir: true,
  },
});
