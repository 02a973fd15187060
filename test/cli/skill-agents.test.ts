// SKILL.md and /agent.md, followed by the real Claude Code and Codex in a shell, with a fake model.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { claude } from '../../agent/prompts/providers/claude.ts'
import { codex } from '../../agent/prompts/providers/codex.ts'
import { setUpCli, skip } from '../agent/prompts/real/set-up-cli.ts'
import { startSignInCoordinator } from '../coordinator/identity/sessions/support.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { toolResults } from '../support/model-server/model-request.ts'
import { text, toolCall } from '../support/model-server/replies.ts'
import { requires } from '../support/requires.ts'
import { waitUntil } from '../support/wait-until.ts'
import { listBoxCommands } from './page-commands.ts'
import { runBox, TEST_PATH } from './run-box.ts'

const AGENTS = [
  {
    provider: claude,
    toCall: (command: string) => toolCall('Bash', { command, description: 'test' }),
    skillsDir: '.claude/skills',
  },
  {
    provider: codex,
    toCall: (cmd: string) => toolCall('exec_command', { cmd }),
    skillsDir: '.agents/skills',
  },
]
type TestedAgent = (typeof AGENTS)[number]

const EMAIL = 'ann@example.com'

const coordinator = await startSignInCoordinator(t, {
  machines: 'local',
  env: { BOXWOOD_LOCAL_ISOLATION: 'process', ...limitsEnv({ edgeRequestsPerSecond: 10_000 }) },
})
const { url, key, printed, addMember } = coordinator
await addMember(EMAIL)

/** A coding agent whose shell finds `box`. */
async function setUpAgent(t: Test, { provider, toCall }: TestedAgent, variables: Record<string, string>) {
  const { models, cli, run } = await setUpCli(t, provider)
  const env = {
    PATH: `${TEST_PATH}:/usr/local/bin:/usr/bin:/bin`,
    XDG_CONFIG_HOME: join(cli.home, '.config'),
    ...variables,
  }
  // Codex starts a login shell.
  for (const [name, value] of Object.entries(env))
    appendFileSync(join(cli.home, '.profile'), `export ${name}='${value}'\n`)
  return {
    models,
    cli,
    env: { ...cli.env, ...env },
    /** The output of each command. */
    async follow(commands: readonly string[]): Promise<string[]> {
      models.reply(...commands.map(toCall), text('done'))
      const { exitCode, stderr } = await run('Follow the instructions', { env })
      t.equal(exitCode, 0, stderr)
      return models.scripted.slice(-1).flatMap(toolResults)
    },
  }
}

/** Prints the exit code and the output. The id of a process is kept for the command that needs it. */
const toScript = (command: string): string =>
  `${command.replace(/\bID\b/, '"$(cat id)"')} >output; echo "exit code: $?"; cat output${command.includes('--detach') ? '; cp output id' : ''}`

async function followCommands(
  t: Test,
  { follow }: Awaited<ReturnType<typeof setUpAgent>>,
  commands: readonly (readonly [command: string, exitCode: number])[],
): Promise<void> {
  const results = await follow(commands.map(([command]) => toScript(command)))
  t.equal(results.length, commands.length)
  for (const [index, [command, exitCode]] of commands.entries())
    t.match(results[index], new RegExp(`^exit code: ${exitCode}$`, 'm'), command)
}

for (const agent of AGENTS) {
  t.test(`${agent.provider.name} follows SKILL.md`, { skip }, async (t) => {
    const tested = await setUpAgent(t, agent, { BOXWOOD_URL: url, BOXWOOD_API_KEY: key })
    const { cli, env, models } = tested
    t.match(await runBox(null, ['skill', 'install'], { env }), { code: 0 })
    const skill = readFileSync(join(cli.home, agent.skillsDir, 'boxwood/SKILL.md'), 'utf8')
    const [, description = ''] = /^description: (.+)$/m.exec(skill) ?? []
    writeFileSync(join(cli.cwd, 'SKILL.md'), skill)

    await followCommands(t, tested, [
      ['box ls', 0],
      ...listBoxCommands(skill).map((command) => [command, 0] as const),
      // The exit codes of the skill.
      ['box nothing', 2],
      ['BOXWOOD_API_KEY=dcp_wrong box ls', 4],
      ['box show nowhere', 5],
      ['box exec --timeout 1 scratch -- sleep 600', 124],
      ['box exec scratch -- no-such-program', 127],
      ['box exec scratch -- "exit 7"', 7],
      ['box share scratch 3000', 0],
      ['box rm --yes scratch', 0],
    ])
    const offered = JSON.stringify(models.scripted[0]?.body)
    t.ok(offered.includes(description.slice(0, 100)), 'the model knows that there is the skill')
  })

  t.test(`${agent.provider.name} follows /agent.md`, { skip: skip || requires('curl') }, async (t) => {
    const tested = await setUpAgent(t, agent, {})
    const { cli, env, follow } = tested
    const [page = '', before = ''] = await follow([
      `curl -sS ${url}/agent.md`,
      // Another coordinator may run on this machine.
      toScript('BOXWOOD_DATA=/nonexistent box ls'),
    ])
    t.match(page, `box login ${url}`)
    t.match(page, /Do not look for keys/)
    t.notMatch(before, 'exit code: 0')

    // The person signs in with the code of the mail.
    const count = printed.length
    const signIn = await runBox(null, ['login', url, '--email', EMAIL], {
      env,
      stdin: null,
      onSpawn: async ({ stdin }) => {
        await waitUntil('the code is printed', () => printed.length > count)
        stdin?.end(`${printed.at(-1)?.split(': ').at(-1)}\n`)
      },
    })
    t.match(signIn, { code: 0 }, signIn.stderr)

    writeFileSync(join(cli.cwd, 'notes.md'), '# Notes\n')
    await followCommands(t, tested, [
      ['box ls', 0],
      ...listBoxCommands(page).map((command) => [command, 0] as const),
      ['box skill', 0],
    ])
  })
}
