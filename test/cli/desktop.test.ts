// box desktop against a coordinator, with an agent in memory.

import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createScript } from '../../cli/desktop/install-desktop.ts'
import { ApiError } from '../../shared/errors.ts'
import { startBoxWithFakeAgent } from '../support/box-with-fake-agent.ts'
import { createFakeDesktopAgent } from '../support/fake-desktop-agent.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { runBox } from './run-box.ts'

const agent = createFakeDesktopAgent()
const coordinator = await startBoxWithFakeAgent(t, agent.handler, {
  env: limitsEnv({ edgeRequestsPerSecond: 1000 }),
})
const { url, key, box: fig } = coordinator
const name = fig.hostname
const page = `${url}/desktop?box=${name}`
// Without a display, no browser is opened.
const env = { BOXWOOD_API_KEY: key, DISPLAY: '', WAYLAND_DISPLAY: '' }
const box = (...args: string[]) => runBox(url, ['desktop', ...args], { env })
const INSTALLED = [...agent.state.programs]

t.test('start prints the address of the page, and stop says what has ended', async (t) => {
  t.same(await box('start', name, '--size', '1024x768', '--dpi', '120'), {
    code: 0,
    stdout: `${page}\n`,
    stderr: `The desktop of ${name} has started: display :1, 1280x800.\n`,
  })
  t.match(agent.requests.at(-1)?.body, { mode: 'desktop', width: 1024, height: 768, dpi: 120 })
  t.match(await box('start', name), { stderr: /is running: display :1/ })
  const browser = await box('start', name, '--mode', 'browser', '--url', 'https://example.com/', '--json')
  t.match(JSON.parse(browser.stdout), { mode: 'browser', alreadyRunning: false, session: { display: ':1' } })
  t.match(agent.requests.at(-1)?.body, { mode: 'browser', url: 'https://example.com/' })
  t.same(await box('open', name), { code: 0, stdout: `${page}\n`, stderr: '' })
  t.same(JSON.parse((await box('open', name, '--json')).stdout), { url: page })
  t.same(await box('stop', name, '--mode', 'browser'), {
    code: 0,
    stdout: '',
    stderr: `The browser of ${name} has stopped.\n`,
  })
  t.match(JSON.parse((await box('stop', name, '--json')).stdout), { mode: 'desktop', wasRunning: true })
  t.match(await box('stop', name), { code: 0, stderr: `The desktop of ${name} was not running.\n` })
})

t.test('the state, with and without the name of the command', async (t) => {
  await box('start', name)
  const { stdout } = await box(name)
  for (const pattern of [
    /^state +running: desktop$/m,
    /^page +http:\S+\/desktop\?box=/m,
    /^display +:1, 1280x800, 96 dpi$/m,
    /^authority +\/state\/authority$/m,
    /^X server +display$/m,
  ])
    t.match(stdout, pattern)
  t.equal((await box('status', name)).stdout, stdout)
  t.match(JSON.parse((await box(name, '--json')).stdout), {
    type: 'desktop.status',
    installOn: 'coordinator',
  })
  await box('stop', name)
  t.match(
    (await box(name)).stdout,
    new RegExp(`^state +not running; \`\\S*box desktop start ${name}\` starts it$`, 'm'),
  )
  t.match(await box('none'), { code: 5, stderr: /No such box/ })
})

t.test('install prints the line for the machine of the coordinator', async (t) => {
  t.match(await box('install', name), { code: 0, stdout: '', stderr: /has all programs of the mode desktop/ })
  agent.state.programs = INSTALLED.map((entry) => ({ ...entry, program: null }))
  t.same(await box('install', name, '--mode', 'browser'), {
    code: 0,
    stdout: 'apt-get install -y --no-install-recommends xvfb x11vnc chromium fonts-dejavu-core\n',
    stderr: `${name} uses the programs of the machine of the coordinator. Run this line there, as root or with sudo:\n`,
  })
  t.match((await box(name)).stdout, /^terminal +missing, optional \(package xterm\)$/m)
  t.match((await box(name)).stdout, /`box desktop install \S+` installs/)
  agent.state.failure = new ApiError('desktop_not_installed')
  t.match(await box('start', name), {
    code: 1,
    stderr: /`box desktop install \S+`.*\(desktop_not_installed\)/s,
  })
  agent.state.failure = null
  agent.state.programs = INSTALLED
})

t.test('wrong usage', async (t) => {
  for (const [args, message] of [
    [
      ['start', name, '--size', '1280'],
      /--size must be WIDTHxHEIGHT in pixels, such as 1280x800, from 320x200 to 3840x2160/,
    ],
    [['start', name, '--size', '100x100'], /--size must be/],
    [['start', name, '--dpi', '1'], /--dpi must be an integer between 48 and 384/],
    [['start', name, '--mode', 'kiosk'], /desktop, browser/],
    [['start', name, '--url', 'https://example.com'], /url must be given with mode browser only/],
    [['start'], /name/],
  ] as const)
    t.match(await box(...args), { code: 2, stderr: message }, args.join(' '))
})

/** Runs the script of `box desktop install` with these programs only. */
function runScript(t: Test, programs: Record<string, string>) {
  const bin = createTempDir(t, 'bin')
  for (const [name, script] of Object.entries({ env: 'exec /usr/bin/env "$@"', ...programs })) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const { status, stdout } = spawnSync('/bin/sh', ['-c', createScript('apt-get install -y xvfb')], {
    env: { PATH: bin },
    encoding: 'utf8',
  })
  return { status, stdout }
}

const APT = 'echo "apt-get $* as $(id -u) $DEBIAN_FRONTEND"'

t.test('the script that runs on a machine uses root or sudo, and otherwise changes nothing', async (t) => {
  t.same(runScript(t, { id: 'echo 0', 'apt-get': APT }), {
    status: 0,
    stdout: 'apt-get update as 0 \napt-get install -y xvfb as 0 noninteractive\n',
  })
  const sudo = '[ "$1" = -n ] || exit 9; shift; echo sudo; exec "$@"'
  t.same(runScript(t, { id: 'echo 1000', sudo, true: 'exit 0', 'apt-get': APT }), {
    status: 0,
    stdout: 'sudo\napt-get update as 1000 \nsudo\napt-get install -y xvfb as 1000 noninteractive\n',
  })
  t.same(runScript(t, { id: 'echo 1000', 'apt-get': APT }), { status: 77, stdout: '' })
  t.same(runScript(t, { id: 'echo 1000', sudo: 'exit 1', 'apt-get': APT }), { status: 77, stdout: '' })
  t.same(runScript(t, { id: 'echo 0' }), { status: 78, stdout: '' })
  t.match(runScript(t, { id: 'echo 0', 'apt-get': 'exit 100' }), { status: 100 })
})
