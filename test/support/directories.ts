// Checks that each directory of sources says in its README.md what it is for.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const COMPONENTS = ['agent', 'cli', 'client', 'coordinator', 'dashboard', 'mcp', 'shared']
const SOURCE = /\.(ts|tsx|js|mjs|c|h|sh|css)$/
/** A path from the project directory, such as `coordinator/secrets/`. */
const PROJECT_PATH = new RegExp(`^(${COMPONENTS.join('|')}|bench|docs|install|test)/(?!.*/node_modules)`)
const README = 'README.md'

/** So that the sentence fits on a line of an editor, and in a list of directories. */
const MAX_SENTENCE_LENGTH = 160

type Directory = { dir: string; sources: number; hasReadme: boolean }

/** The directories that have an opening sentence, relative to the project directory, sorted. */
export const listReadmes = (projectDir: string): string[] =>
  listDirectories(projectDir)
    .filter(({ hasReadme }) => hasReadme)
    .map(({ dir }) => join(dir, README))

/** The first line of the README.md of a directory. */
export const readSentence = (projectDir: string, dir: string): string =>
  readFileSync(join(projectDir, dir, README), 'utf8').split('\n')[0] ?? ''

/** Returns the problems of all directories of the components, each with the path of the directory or file. */
export function findDirectoryProblems(projectDir: string): string[] {
  return listDirectories(projectDir).flatMap(({ dir, sources, hasReadme }) => {
    if (!hasReadme)
      return sources >= 2 ? [`${dir}: has no ${README} with a sentence that says what it is for`] : []
    if (sources === 0) return [`${join(dir, README)}: describes a directory that has no sources`]
    const text = readFileSync(join(projectDir, dir, README), 'utf8')
    const problem = findTextProblem(text)
    if (problem !== null) return [`${join(dir, README)}:${problem}`]
    const component = dir.split('/')[0] ?? ''
    return findMissingFiles(projectDir, text, [dir, component, '']).map(
      (problem) => `${join(dir, README)}:${problem}`,
    )
  })
}

/**
 * The source files and the paths that a text names in backticks, such as `run.c` and `agent/exec/`, and that do not exist in one
 * of the directories, each as `line: problem`.
 */
export function findMissingFiles(projectDir: string, text: string, dirs: readonly string[]): string[] {
  return text.split('\n').flatMap((line, index) =>
    [...line.matchAll(/`([\w./-]+)`/g)]
      .map(([, name = '']) => name)
      .filter((name) => SOURCE.test(name) || PROJECT_PATH.test(name))
      .filter((name) => !name.startsWith('/') && !dirs.some((dir) => existsSync(join(projectDir, dir, name))))
      .map((name) => `${index + 1}: names ${name}, which does not exist`),
  )
}

function findTextProblem(text: string): string | null {
  const [sentence = '', next = '', after] = text.split('\n')
  if (sentence.trim() === '') return '1: begins with an empty line'
  if (sentence.startsWith('#')) return '1: begins with a heading instead of a sentence'
  if (sentence.length > MAX_SENTENCE_LENGTH)
    return `1: has a first line of ${sentence.length} characters, more than ${MAX_SENTENCE_LENGTH}`
  if (!/^\p{Lu}.*\.$/u.test(sentence))
    return '1: begins with no sentence: a capital letter, and a full stop at the end'
  if (/[.!?] \p{Lu}/u.test(sentence)) return '1: has more than one sentence on its first line'
  if (next !== '') return '2: has no empty line after the sentence'
  if (!text.endsWith('\n') || after === '') return '3: has empty lines, or no newline at the end'
  return null
}

/** The directories of the components that have sources or a README.md. The sources of a directory include those below it. */
function listDirectories(projectDir: string): Directory[] {
  const found = new Map<string, Directory>()
  for (const component of COMPONENTS.filter((name) => existsSync(join(projectDir, name)))) {
    for (const file of listFiles(join(projectDir, component)).map((path) => relative(projectDir, path))) {
      const isReadme = file.endsWith(`/${README}`)
      if (!isReadme && !SOURCE.test(file)) continue
      for (let dir = dirname(file); dir !== '.'; dir = dirname(dir)) {
        const directory = found.get(dir) ?? { dir, sources: 0, hasReadme: false }
        if (isReadme && dir === dirname(file)) directory.hasReadme = true
        if (!isReadme) directory.sources++
        found.set(dir, directory)
      }
    }
  }
  return [...found.values()]
    .filter(({ sources, hasReadme }) => sources > 0 || hasReadme)
    .sort((a, b) => (a.dir < b.dir ? -1 : 1))
}

const listFiles = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.includes('/node_modules/'))
