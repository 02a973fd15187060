// Each directory of sources has one opening sentence, in its README.md, and the checker reports each kind of violation.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findDirectoryProblems, findMissingFiles, readSentence } from './support/directories.ts'
import { listPages } from './support/pages.ts'
import { PROJECT_DIR } from './support/project.ts'
import { ROOMS } from './support/rooms.ts'

t.test('every directory says what it is for', async (t) => {
  t.same(findDirectoryProblems(PROJECT_DIR), [])
})

const readPage = (page: string): string => readFileSync(join(PROJECT_DIR, page), 'utf8')

/** The directories from which a page names sources, beside that of the project. */
const PAGE_DIRS: Readonly<Record<string, readonly string[]>> = {
  'CONTRIBUTING.md': ['agent/exec/native', 'coordinator/db/migrations', 'install/bootstrap', 'test/support'],
  'bench/README.md': ['bench'],
  'docs/integrations.md': ['docs/integrations'],
  'docs/machines.md': ['install/bootstrap'],
  'docs/protocol.md': ['install/bootstrap'],
  'docs/protocol-upgrades.md': ['install/bootstrap'],
}
/** Files that are in each directory of a resource, a program in the archive of the agent, and examples. */
const OTHER_FILES = /names (service\.ts|store\.ts|setup\.mjs|first\.mjs|coordinator\/providers\/NAME\/), /

t.test('the sources that a page names exist', async (t) => {
  for (const page of listPages()) {
    const dirs = ['', 'coordinator', 'agent', ...(PAGE_DIRS[page] ?? [])]
    const missing = findMissingFiles(PROJECT_DIR, readPage(page), dirs)
    t.same(
      missing.filter((problem) => !OTHER_FILES.test(problem)),
      [],
      page,
    )
  }
})

t.test('docs/architecture.md lists the rooms in their order, each with its sentence', async (t) => {
  for (const component of ['coordinator', 'agent']) {
    const [, section = ''] = readPage('docs/architecture.md').split(new RegExp(`^## ${component}$`, 'im'))
    const [table = ''] = section.split('\n## ')
    const rows = ROOMS[component]?.map((room) => {
      const sentence = readSentence(PROJECT_DIR, `${component}/${room}`)
      return `| \`${room}/\` | ${sentence} |`
    })
    t.same(
      table.split('\n').filter((line) => line.startsWith('| `')),
      rows,
      component,
    )
  }
})

const SENTENCE = 'Runs commands.\n'
const SOURCES = { 'a.ts': '', 'b.ts': '' }

const violations: Record<string, [exec: Record<string, string>, problem: string]> = {
  'a directory without a README': [
    SOURCES,
    'agent/exec: has no README.md with a sentence that says what it is for',
  ],
  'a heading': [
    { ...SOURCES, 'README.md': `# Commands\n\n${SENTENCE}` },
    'agent/exec/README.md:1: begins with a heading instead of a sentence',
  ],
  'an empty first line': [
    { ...SOURCES, 'README.md': `\n${SENTENCE}` },
    'agent/exec/README.md:1: begins with an empty line',
  ],
  'an empty file': [{ ...SOURCES, 'README.md': '' }, 'agent/exec/README.md:1: begins with an empty line'],
  'a sentence that is too long': [
    { ...SOURCES, 'README.md': `Runs ${'x'.repeat(155)}.\n` },
    'agent/exec/README.md:1: has a first line of 161 characters, more than 160',
  ],
  'a first line that is no sentence': [
    { ...SOURCES, 'README.md': 'Runs commands\n' },
    'agent/exec/README.md:1: begins with no sentence: a capital letter, and a full stop at the end',
  ],
  'two sentences on the first line': [
    { ...SOURCES, 'README.md': 'Runs commands. Terminates them.\n' },
    'agent/exec/README.md:1: has more than one sentence on its first line',
  ],
  'text directly below the sentence': [
    { ...SOURCES, 'README.md': `${SENTENCE}Terminates them.\n` },
    'agent/exec/README.md:2: has no empty line after the sentence',
  ],
  'nothing below an empty line': [
    { ...SOURCES, 'README.md': `${SENTENCE}\n` },
    'agent/exec/README.md:3: has empty lines, or no newline at the end',
  ],
  'a README without sources': [
    { 'README.md': SENTENCE },
    'agent/exec/README.md: describes a directory that has no sources',
  ],
  'a directory that does not exist': [
    { ...SOURCES, 'README.md': `${SENTENCE}\nSee \`agent/exec/\`, \`agent/run/\` and \`/agent/tunnel\`.\n` },
    'agent/exec/README.md:3: names agent/run/, which does not exist',
  ],
  'a file that does not exist': [
    {
      ...SOURCES,
      'README.md': `${SENTENCE}\nSee \`a.ts\`.\nSee \`exec/b.ts\`, \`c.ts\` and \`shared/a.ts\`.\n`,
    },
    'agent/exec/README.md:4: names c.ts, which does not exist',
  ],
}

for (const [name, [exec, problem]] of Object.entries(violations)) {
  t.test(`reports ${name}`, async (t) => {
    const agent = { 'README.md': 'The agent.\n', 'main.ts': '', 'app.ts': '', exec }
    const shared = { 'a.ts': '' }
    t.same(findDirectoryProblems(t.testdir({ agent, shared })), [problem])
  })
}

t.test('counts the sources below a directory', async (t) => {
  const dir = t.testdir({ cli: { exec: { 'a.ts': '' }, copy: { 'a.ts': '' } } })
  t.same(findDirectoryProblems(dir), ['cli: has no README.md with a sentence that says what it is for'])
})

t.test(
  'accepts a directory with one source, with and without a README, and sentences with paragraphs',
  async (t) => {
    const text = `${SENTENCE}\nA paragraph with \`a.ts\`.\n\n## A heading\n`
    const dir = t.testdir({
      cli: {
        'README.md': 'The `box` command.\n',
        exec: { 'a.ts': '', 'README.md': text },
        copy: { 'a.ts': '' },
      },
    })
    t.same(findDirectoryProblems(dir), [])
  },
)
