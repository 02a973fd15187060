// The pages of the documentation, which users and contributors read.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from './project.ts'

/** Paths relative to the project directory. The README of the project is the first one. */
export function listPages(): string[] {
  const docs = readdirSync(join(PROJECT_DIR, 'docs')).filter((name) => name.endsWith('.md'))
  return ['README.md', 'CONTRIBUTING.md', 'bench/README.md', ...docs.map((name) => `docs/${name}`)]
}
