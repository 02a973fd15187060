// The pages of the documentation, in the project's directory docs/.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { PROJECT_DIR } from '../project-directory.ts'

const DOCS_DIR = join(PROJECT_DIR, 'docs')

export const listTopics = (): string[] =>
  readdirSync(DOCS_DIR)
    .filter((file) => file.endsWith('.md'))
    .map((file) => basename(file, '.md'))
    .sort()

/** Markdown. */
export const readPage = (topic: string): string => readFileSync(join(DOCS_DIR, `${topic}.md`), 'utf8')

export const getTitle = (page: string): string => /^# (.*)$/m.exec(page)?.[1] ?? ''
