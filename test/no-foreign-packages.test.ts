// No command in a text of the project runs an unrelated package: outside the project, npx downloads packages.
import { execFileSync } from 'node:child_process'
import { basename } from 'node:path'
import t from 'tap'
import { PROJECT_DIR } from './support/project.ts'

/** All except this file and the names of dependencies. */
const FILES = ['.', ':!package-lock.json', `:!test/${basename(import.meta.filename)}`]

t.test('npx is used only with --no, which forbids a download', (t) => {
  const grep = (pattern: string) => {
    try {
      return execFileSync('git', ['grep', '-nP', pattern, '--', ...FILES], {
        cwd: PROJECT_DIR,
        encoding: 'utf8',
      })
    } catch (error) {
      // git grep exits with 1 without a match.
      if ((error as { status?: number }).status === 1) return ''
      throw error
    }
  }
  t.match(grep('npx --no'), 'CONTRIBUTING.md', 'the search finds texts')
  t.equal(grep(`np[x] (?!--no )[\\w@./-]`), '')
  t.equal(grep(`npm (exec|ini[t]|create) `), '')
  t.end()
})
