// No command in a text of the project runs an unrelated package: outside the project, npx downloads packages.
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { PROJECT_DIR } from './support/project.ts'

/** This file, and the names of dependencies. */
const EXCEPTIONS = ['package-lock.json', `test/${basename(import.meta.filename)}`]
/** Directories with what was installed or built. */
const EXCLUDED = ['node_modules', '.git', '.types', '.tap', '.boxwood']
const TEXT = /(^|\/)([\w-]+|.*\.(ts|tsx|js|mjs|json|md|sh|yml|yaml|html|css))$/

function listTexts(): { file: string; text: string }[] {
  const files = globSync(['**/*', '.ci/*'], {
    cwd: PROJECT_DIR,
    exclude: ({ name }) => EXCLUDED.includes(name),
    withFileTypes: true,
  })
  return files
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(PROJECT_DIR.length).replace(/^\//, ''))
    .filter((file) => TEXT.test(file) && !EXCEPTIONS.includes(file))
    .map((file) => ({ file, text: readFileSync(join(PROJECT_DIR, file), 'utf8') }))
}

t.test('npx is used only with --no, which forbids a download', async (t) => {
  const texts = listTexts()
  const search = (pattern: RegExp) =>
    texts.flatMap(({ file, text }) => Array.from(text.matchAll(pattern), ([found]) => `${file}: ${found}`))
  t.ok(search(/npx --no/g).includes('CONTRIBUTING.md: npx --no'), 'the search finds texts')
  t.ok(
    texts.some(({ file }) => file === '.ci/run') && texts.some(({ file }) => file === 'box'),
    'also in scripts',
  )
  t.same(search(/npx (?!--no )[\w@./-]/g), [])
  t.same(search(/npm (exec|init|create) /g), [])
})
