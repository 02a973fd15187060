// Types the commands of the README, and of the first minutes of other pages, into a terminal, as a new user does: an ordinary user with
// a copy of the project.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { packClient } from '../../install/package-client.ts'
import { createNewUser } from '../support/new-user.ts'
import { readBlocks, readPageCommands } from '../support/page-commands.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { requires } from '../support/requires.ts'
import { readRunningCoordinator, stopDataDirectory } from '../support/stop-data-directory.ts'
import { startTmux, type TmuxTerminal } from '../support/tmux.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

/** What a user types into commands that do not end by themselves, after the screen has shown the text. */
const ANSWERS: Record<string, { after: RegExp; type: string } | { after: RegExp; press: string }> = {
  'box ssh fig': { after: /Session \S+ on fig.*\$\s*$/s, type: 'exit' },
  'box exec -it fig top': { after: /PID USER/, type: 'q' },
  'box forward fig 5432': { after: /^localhost:\d+ -> fig:5432$/m, press: 'C-c' },
  'box secrets set ANTHROPIC_API_KEY': { after: /Value of ANTHROPIC_API_KEY:\s*$/, type: 'sk-ant-test' },
  'box rm fig plum': { after: /\[y\/N\]\s*$/, type: 'y' },
}

/** The pages with commands for curl, in an order in which the variables of one are those of the next. */
const CURL_PAGES = ['docs/api.md', 'docs/api-snapshots.md', 'docs/api-boxes.md']

/** The pages whose section "The first minute" is typed into a terminal of its own, which may set variables and change the directory. */
const FIRST_MINUTES = ['docs/mcp.md', 'docs/client.md']
const FIRST_MINUTE = 'The first minute'

const CURL_EXEC = `curl -s http://127.0.0.1:7070/v1/box/fig/exec -H "Authorization: Bearer $KEY" --json '{"command":"uname -a"}'`

/** Text that the screen shows after the command. */
const RESULTS: Record<string, RegExp> = {
  'box exec fig uname -a': /^Linux fig /m,
  "box exec fig -- 'wc -l notes.md && id'": /^\d+ notes\.md\nuid=\d+/m,
  'box ps fig': /echo step/,
  'box logs -f fig': /^step 5$/m,
  'box history fig': /uname -a/,
  'box share fig 3000': /^http:\/\/fig-3000-\w+\.localhost:\d+\/$/m,
  "box exec fig -- 'echo $ANTHROPIC_API_KEY'": /^dcpsec_\w{32}$/m,
  'box environments create app -e NODE_ENV=test --repo octocat/Hello-World': /^app: created/m,
  [CURL_EXEC]: /"stdout":"Linux fig /,
  'box login': /^Signed in to http:\S+ as Owner, workspace Boxwood\./m,
  'box keys create ci --box fig --access boxes=run --expires 30d': /^dcp_\w+$/m,
  'box members invite ada@example.com --role member': /^ada@example\.com is invited as member\./m,
  'box audit --since 1h': / key\.create .* name=ci /,
  'box audit verify': /^\d+ events are intact\.$/m,
  'box mcp install claude': /Claude Code starts `box mcp` from now on: \S+\.claude\.json has the server/,
  'node first.mjs': /^3 Hello from \S+\n+(.*\n)*notes\.md 8$/m,
  'box status': /running \(pid \d+\)/,
}

const stripComment = (line: string): string => line.replace(/\s{2,}#.*$/, '')

/** The number of the shell's commands so far, and the exit code of the last one. */
const PROMPT = /\[(\d+):(\d+)\]\$ *\n*$/

async function startShell(t: Parameters<typeof startTmux>[0], loginCommand: string): Promise<TmuxTerminal> {
  const terminal = await startTmux(t, { cols: 160, rows: 50 })
  terminal.type(loginCommand)
  terminal.press('Enter')
  await waitUntil('the shell of the user has started', () =>
    /bash-[\d.]+\$ *\n*$/.test(terminal.readScreen()),
  )
  terminal.type(String.raw`PS1='[\#:$?]\$ '; clear`)
  terminal.press('Enter')
  await terminal.waitFor(PROMPT)
  return terminal
}

/**
 * Types a command on an empty screen. Resolves with the screen when the next prompt appears.
 * @param typed the line with the addresses of this test
 */
async function run(
  terminal: TmuxTerminal,
  line: string,
  typed: string,
): Promise<{ exitCode: number; screen: string }> {
  const getCount = () => Number(PROMPT.exec(terminal.readScreen())?.[1] ?? Number.NaN)
  terminal.press('C-l')
  const count = await waitUntil('the screen is empty', () => /^\[/.test(terminal.readScreen()) && getCount())
  terminal.type(typed)
  terminal.press('Enter')
  const answer = ANSWERS[stripComment(line)]
  if (answer) {
    await terminal.waitFor(answer.after)
    if ('press' in answer) terminal.press(answer.press)
    else terminal.type(answer.type)
    if ('type' in answer && answer.type !== 'q') terminal.press('Enter')
  }
  const screen = await waitUntil(
    `\`${line}\` has completed`,
    () => getCount() > count && terminal.readScreen(),
  ).catch((error) => {
    throw new Error(`${error.message}:\n${terminal.readScreen()}`)
  })
  return { exitCode: Number(PROMPT.exec(screen)?.[2]), screen }
}

/** These need an engine, a registry and a mirror of packages on the internet. test/e2e/providers/ runs such commands. */
const NEEDS_ENGINE = [
  'box create lime --image debian:12',
  "box exec lime -- 'apt-get update && apt-get install -y ripgrep'",
  'box run --rm --image python:3.13 -- python -V',
]

const skip = requires('tmux', 'bash', 'curl', 'top')
if (skip !== false) t.pass('the commands of the README', { skip })
else {
  const [startLine = '', testLine = '', ...allCommands] = readPageCommands('README.md')
  const lines = allCommands.filter((line) => !NEEDS_ENGINE.includes(stripComment(line)))

  t.test('.ci/run runs the test command of the README', async (t) => {
    const ciScript = readFileSync(join(PROJECT_DIR, '.ci/run'), 'utf8')
    for (const command of stripComment(testLine).split(' && ')) t.match(ciScript, command, command)
  })

  t.test('the commands that need an engine are in the README', async (t) => {
    t.equal(allCommands.length - lines.length, NEEDS_ENGINE.length)
  })

  t.test('the commands of the README, and the ones with curl, work as written', async (t) => {
    // The default port may be in use on the machine that runs the tests.
    const user = createNewUser(t, { BOXWOOD_LISTEN: '127.0.0.1:0' })
    const dataDir = join(user.projectDir, '.boxwood')
    t.teardown(() => stopDataDirectory(dataDir, user.projectDir))

    const server = await startShell(t, user.loginCommand)
    const getCount = () => Number(PROMPT.exec(server.readScreen())?.[1])
    const count = getCount()
    server.type(startLine)
    server.press('Enter')
    const coordinator = await waitUntil(
      'the coordinator has started',
      () => {
        if (getCount() > count) throw new Error(`${startLine} has failed:\n${server.readScreen()}`)
        return readRunningCoordinator(dataDir)
      },
      LONG_DEADLINE_MS,
    )
    const [, suggestedLine = ''] =
      /^ {2}(\S*box .*)$/m.exec(await server.waitFor(/In another terminal.*\n.*box /)) ?? []

    t.notMatch(server.readScreen(), /npm warn/i, startLine)
    t.match(suggestedLine, /box exec \S+ -- uname -a/, 'the command that the start suggests')

    // The last block of the README stops the coordinator.
    const lastLines = lines.splice(lines.findIndex((line) => stripComment(line) === 'box up'))
    const curlLines = CURL_PAGES.flatMap((page) => readPageCommands(page))
    const [program = ''] = readBlocks('docs/client.md', 'js', FIRST_MINUTE)
    const commands: string[] = []
    const typeLines = async (terminal: TmuxTerminal, lines: readonly string[]) => {
      commands.push(...lines.map(stripComment))
      for (const line of lines) {
        // The ports of the pages may be in use on the machine that runs the tests.
        const typed = line
          .replace('http://127.0.0.1:7070', coordinator.url)
          .replace('box forward fig 5432', 'box forward fig 0:5432')
        if (line === 'node first.mjs') writeFileSync(join(user.home, 'first/first.mjs'), program)
        const { exitCode, screen } = await run(terminal, line, typed)
        t.equal(exitCode, 0, line)
        const expected = RESULTS[stripComment(line)]
        if (exitCode !== 0) t.comment(screen.trimEnd())
        // curl exits with 0 when the coordinator responds with an error.
        if (line.startsWith('curl')) t.notMatch(screen, /"error":[{"]/, line)
        if (expected) t.match(screen, expected, line)
      }
    }
    const terminal = await startShell(t, user.loginCommand)
    await typeLines(terminal, [suggestedLine, ...lines, ...curlLines])

    // `npm run package` needs the packages for tests, which this user omits.
    await packClient(user.projectDir)
    for (const page of FIRST_MINUTES)
      await typeLines(await startShell(t, user.loginCommand), readPageCommands(page, FIRST_MINUTE))
    await typeLines(terminal, lastLines)
    for (const command of Object.keys({ ...ANSWERS, ...RESULTS })) t.ok(commands.includes(command), command)

    const screen = await waitUntil('the coordinator has stopped', () => PROMPT.exec(server.readScreen()))
    t.equal(screen[2], '0', 'box down stops the coordinator of npm start')
  })
}
