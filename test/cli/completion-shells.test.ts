// The completion scripts in real shells: a person types a part of a command and presses Tab.
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { SCRIPTS } from '../../cli/completion/scripts.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { requires } from '../support/requires.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startTmux, type TmuxTerminal } from '../support/tmux.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createProcessStarter } from './detached-processes.ts'
import { runBox, TEST_PATH } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'], { machines: 'local' })
const plum = await coordinator.findBox('plum')
await coordinator.api('POST', `/boxes/${plum.id}/suspend`)
await coordinator.waitForState(plum.id, 'suspended')
const id = await createProcessStarter(coordinator).start('sleep 1000')
const home = createTempDir(t, 'completion')
const env = {
  BOXWOOD_URL: `${coordinator.url}/api/v1`,
  BOXWOOD_API_KEY: coordinator.key,
  PATH: TEST_PATH,
  HOME: home,
  XDG_CONFIG_HOME: '',
  XDG_DATA_HOME: '',
}

const BASH_COMPLETION = '/usr/share/bash-completion/bash_completion'

const write = (path: string, content: string) => {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), content)
}
write('notes.md', '')
write('bashrc', "PS1='P> '; source <(box completion bash)\n")
// bash-completion and fish load the files of box install, and zsh the file _box.
write('bashrc-with-library', `PS1='P> '; source ${BASH_COMPLETION}\n`)
write('zsh-source/.zshrc', "PS1='P> '; source <(box completion zsh)\n")
write('zsh-file/.zshrc', "PS1='P> '; fpath=($ZDOTDIR $fpath); autoload -Uz compinit; compinit\n")
write('zsh-file/_box', SCRIPTS.zsh)
write(
  '.config/boxwood/profiles.json',
  JSON.stringify({ selected: null, profiles: [{ name: 'ann@work', url: `${coordinator.url}/api/v1` }] }),
)
chmodSync(join(home, '.config/boxwood/profiles.json'), 0o600)
write('.config/fish/config.fish', 'function fish_prompt; echo -n "P> "; end\n')
t.match(await runBox(null, ['install', '--dir', join(home, 'bin')], { env }), { code: 0 })

async function startShell(t: Test, command: string): Promise<TmuxTerminal> {
  const terminal = await startTmux(t, { env })
  terminal.type(`cd ${home} && exec ${command}`)
  terminal.press('Enter')
  await terminal.waitFor(/^P>/m)
  return terminal
}

const escapeForRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Types `typed`, then Tab, then a letter, and waits until the line is `completed` and the letter. Deletes the line. */
async function pressTab(terminal: TmuxTerminal, typed: string, completed: string): Promise<void> {
  terminal.type(typed)
  terminal.press('Tab')
  terminal.type('X')
  await terminal.waitFor(new RegExp(`^P> ${escapeForRegExp(`${completed}X`)}`, 'm'))
  terminal.press('C-u')
  await terminal.waitFor(/^P>\s*$/m)
}

/** [typed, completed] */
const COMPLETIONS = [
  ['box exe', 'box exec '],
  ['box exec f', 'box exec fig '],
  ['box create --ti', 'box create --tier '],
  ['box create --tier ult', 'box create --tier ultra '],
  ['box create --tier=ult', 'box create --tier=ultra '],
  ['box kill fig p_', `box kill fig ${id} `],
  ['box cp fi', 'box cp fig:'],
  ['box use ann@w', 'box use ann@work '],
  ['box cp note', 'box cp notes.md '],
  ['box cp notes.md fi', 'box cp notes.md fig:'],
  ['BOXWOOD_DATA=x box exec f', 'BOXWOOD_DATA=x box exec fig '],
  [`${PROJECT_DIR}box exec f`, `${PROJECT_DIR}box exec fig `],
] as const

/** For a second way to load the same script: these depend on how the shell splits the line and finds the command. */
const LOADED_COMPLETIONS = COMPLETIONS.filter(([typed]) =>
  [/ f$/, /=ult$/, /@w$/, /^box cp fi$/].some((pattern) => pattern.test(typed)),
)

const SHELLS = [
  {
    name: 'bash',
    program: 'bash',
    command: 'bash --noprofile --rcfile bashrc',
    needs: null,
    completions: COMPLETIONS,
  },
  {
    name: 'bash with bash-completion',
    program: 'bash',
    command: 'bash --noprofile --rcfile bashrc-with-library',
    needs: BASH_COMPLETION,
    completions: LOADED_COMPLETIONS,
  },
  {
    name: 'zsh',
    program: 'zsh',
    command: `env ZDOTDIR=${home}/zsh-source zsh`,
    needs: null,
    completions: COMPLETIONS,
  },
  {
    name: 'zsh with an autoloaded file',
    program: 'zsh',
    command: `env ZDOTDIR=${home}/zsh-file zsh`,
    needs: null,
    completions: LOADED_COMPLETIONS,
  },
  { name: 'fish', program: 'fish', command: 'fish', needs: null, completions: COMPLETIONS },
] as const

for (const { name, program, command, needs, completions } of SHELLS) {
  const skip =
    requires('tmux', program) ||
    (needs !== null && !existsSync(needs) && 'the package bash-completion is not installed')
  t.test(`Tab in ${name}`, { skip }, async (t) => {
    const terminal = await startShell(t, command)
    for (const [typed, completed] of completions) await pressTab(terminal, typed, completed)
    terminal.type('box exec ')
    terminal.press('Tab', 'Tab')
    await terminal.waitFor(/plum/)
    t.match(terminal.readScreen(), /\bfig\b/, 'lists the boxes')
  })
}

t.test('fish describes the candidates', { skip: requires('fish') }, async (t) => {
  const list = async (line: string) => {
    const args = ['-c', `complete -C '${line}'`]
    return (await promisify(execFile)('fish', args, { cwd: home, env: { ...process.env, ...env } })).stdout
  }
  t.equal(await list('box exec '), 'fig\trunning\nplum\tsuspended\n')
  const paths = await list('box cp ')
  t.match(paths, /^fig:\trunning$/m)
  t.match(paths, /^notes\.md/m)
})
