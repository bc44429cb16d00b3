#!/usr/bin/env node
// Prints the AsyncAPI document of the streams. Needs `npm run build`.
import { referenceAsyncDocument } from '../dist/api/server/reference-document.js';

process.stdout.write(referenceAsyncDocument());
