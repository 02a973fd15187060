// The pages name only commands and options that `box` has.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommanderError } from 'commander'
import t from 'tap'
import { listNeededCommands, parseCommandLine } from '../cli/arguments/command-line.ts'
import { createProgram } from '../cli/program.ts'
import { isCommandName } from '../cli/register-commands.ts'
import { listPages } from './support/pages.ts'
import { PROJECT_DIR } from './support/project.ts'

const noAction = async () => undefined

/** Text names many commands without their arguments, and writes values as words in capitals. */
const WRONG = ['unknownCommand', 'unknownOption', 'excessArguments', 'conflictingOption'].map(
  (name) => `commander.${name}`,
)

/** The words of the commands of `box` in a line of a shell, or in text between backquotes. */
function findCommands(text: string): string[][] {
  const line = text.replace(/\s#.*$/, '')
  const calls = line.matchAll(/(?:^|[\s|&;(])(?:\.\/)?box (?=[a-z])((?:'[^']*'|"[^"]*"|[^|&;)'"])*)/g)
  return (
    [...calls]
      .map(([, rest = '']) => splitWords(rest))
      // These print help.
      .filter((words) => words[0] !== 'help' && !words.includes('--help'))
  )
}

/** Redirections and an ellipsis are not arguments. */
const splitWords = (text: string): string[] =>
  [...text.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)]
    .map(([word]) => word)
    .filter((word) => !/^(<|\d?>|…$)/.test(word))

const findTexts = (markdown: string): { line: number; text: string }[] => {
  let block = ''
  return markdown.split('\n').flatMap((text, index) => {
    if (text.startsWith('```')) block = block === '' ? text : ''
    const texts = block === '' ? [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code) : []
    if (/^```(sh|shell)$/.test(block)) texts.push(text)
    return texts.map((text) => ({ line: index + 1, text }))
  })
}

/** Returns null for a command that `box` accepts, or that lacks arguments only. */
async function findProblem(words: string[]): Promise<string | null> {
  const { args } = parseCommandLine(words, isCommandName)
  const names = listNeededCommands(args, isCommandName)
  const program = await createProgram({ runAction: noAction, runLocalAction: noAction }, names)
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError && WRONG.includes(error.code)) return error.message
  }
  return null
}

t.test('the pages name only commands and options that exist', async (t) => {
  const problems: string[] = []
  let count = 0
  for (const page of listPages()) {
    for (const { line, text } of findTexts(readFileSync(join(PROJECT_DIR, page), 'utf8'))) {
      for (const words of findCommands(text)) {
        count += 1
        const problem = await findProblem(words)
        if (problem !== null) problems.push(`${page}:${line}: box ${words.join(' ')}: ${problem}`)
      }
    }
  }
  t.ok(count > 400, `${count} commands`)
  t.same(problems, [])
})

t.test('reports unknown commands, options and arguments', async (t) => {
  const check = async (text: string) => Promise.all(findCommands(text).map(findProblem))
  t.match(await check('box nosuch fig'), [/unknown command 'nosuch'/])
  t.match(await check('box ls | grep a && ./box exec --nosuch fig ls'), [null, /unknown option '--nosuch'/])
  t.match(await check('X="$(box ls --json)" && box ls fig  # box nosuch'), [null, /too many arguments/])
  t.same(await check("box exec -d fig -- 'a; b' >file"), [null])
})
