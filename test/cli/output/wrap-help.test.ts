// Help pages fit the terminal.
import type { Command } from 'commander'
import t from 'tap'
import { wrapHelp } from '../../../cli/output/wrap-help.ts'
import { createProgram } from '../../../cli/program.ts'
import { runBox } from '../run-box.ts'

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

/** Their help says how other programs call them, or they have nothing to choose. */
const WITHOUT_EXAMPLES = ['ssh-proxy', 'uninstall', 'completion', '__complete', 'help']

const noAction = async () => undefined

/** The help page of every command and subcommand, by its usage, such as `box keys create`. */
async function readHelpPages(): Promise<Map<string, string>> {
  const program = await createProgram({ runAction: noAction, runLocalAction: noAction }, null)
  const pages = new Map<string, string>()
  const addPage = (command: Command, parents: string) => {
    const usage = `${parents}${command.name()}`
    const texts: string[] = []
    command.configureOutput({ writeOut: (text) => texts.push(wrapHelp(text, 80)) })
    command.outputHelp()
    pages.set(usage, texts.join(''))
    for (const child of command.commands) addPage(child, `${usage} `)
  }
  addPage(program, '')
  return pages
}

t.test('no help page is wider than a terminal of 80 columns; each command has examples', async (t) => {
  const pages = await readHelpPages()
  t.ok(pages.size > 60, `${pages.size} pages`)
  for (const [usage, page] of pages) {
    t.match(page, new RegExp(`^Usage: ${usage}\\b`), usage)
    t.match(page, /-h, --help +show help\n/, usage)
    t.same(
      page.split('\n').filter((line) => line.length > 80),
      [],
      usage,
    )
    const [, name = '', subcommand] = usage.split(' ')
    if (name !== '' && subcommand === undefined && !WITHOUT_EXAMPLES.includes(name))
      t.match(page, /Examples?:\n +\S*box /i, usage)
  }
})

t.test('a help page needs no coordinator', async (t) => {
  t.match(await runBox(null, ['create', '--help']), { code: 0, stdout: /^Usage: box create/ })
})
