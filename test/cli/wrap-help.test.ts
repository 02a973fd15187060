// Help pages fit the terminal.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { wrapHelp } from '../../cli/wrap-help.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { runBox } from './run-box.ts'

t.test('the lines of a paragraph are joined and wrapped', async (t) => {
  const text = 'Lists the boxes, newest first. Shows the\nstate of each.\n\nSee also: box show'
  t.equal(wrapHelp(text, 60), 'Lists the boxes, newest first. Shows the state of each.\n\nSee also: box show')
  t.equal(
    wrapHelp(text, 40),
    'Lists the boxes, newest first. Shows the\nstate of each.\n\nSee also: box show',
  )
})

t.test('usage, headings and commands keep their lines', async (t) => {
  const text = `Usage: box exec [options] <name> [--] <command...>

Examples:
  box exec -e A=b -w src fig make all check install
  box ls
Text after it.`
  t.equal(wrapHelp(text, 40), text)
})

t.test('a description continues below itself', async (t) => {
  const text = '  125  box exec itself failed: wrong usage, no such box, coordinator unreachable'
  t.equal(
    wrapHelp(text, 51),
    '  125  box exec itself failed: wrong usage, no such\n       box, coordinator unreachable',
  )
  t.equal(wrapHelp(text, 20).split('\n')[0], '  125  box exec itself failed: wrong', 'never below 40 columns')
})

t.test('no help page is wider than a terminal of 80 columns', async (t) => {
  const files = await readdir(join(PROJECT_DIR, 'cli/commands'))
  const commands = [...files.map((file) => [file.replace('.ts', '')]), ['uninstall'], []]
  const pages = await Promise.all(commands.map((command) => runBox(null, [...command, '--help'])))
  for (const [index, { stdout }] of pages.entries()) {
    const usage = ['box', ...(commands[index] ?? [])].join(' ')
    t.match(stdout, new RegExp(`^Usage: ${usage}\\b`), usage)
    t.same(
      stdout.split('\n').filter((line) => line.length > 80),
      [],
      usage,
    )
  }
})
