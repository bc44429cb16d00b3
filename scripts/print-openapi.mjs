#!/usr/bin/env node
// Prints the OpenAPI document that clients are generated from. Needs `npm run build`.
import { referenceDocument } from '../dist/api/server/reference-document.js';

process.stdout.write(referenceDocument());
