// A person's terminal session on a real box, in tmux: box ssh, vim, Ctrl-C, resize, detach, attach, exit code.
import { resolve } from 'node:path'
import t from 'tap'
import type { TerminalSession } from '../../shared/api/terminal.ts'
import { runBox } from '../cli/run-box.ts'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'
import { findProgram, requires } from '../support/requires.ts'
import { NO_TMUX, startTmux } from '../support/tmux.ts'
import { waitUntil } from '../support/wait-until.ts'

if (NO_TMUX) t.pass('a terminal session', { skip: NO_TMUX })
else {
  const {
    coordinator,
    clientProxy,
    agentProxy,
    box: firstBox,
    key,
    restart: restartCoordinator,
  } = await startProxiedCoordinator(t)
  const name = firstBox.hostname
  const env = {
    BOXWOOD_URL: clientProxy.url,
    BOXWOOD_API_KEY: key,
  }
  const box = (...args: string[]) => runBox(null, args, { env })
  const boxCommand = resolve(import.meta.dirname, '../../box')

  t.test(
    'a session: Ctrl-C, resize, detach, attach after the coordinator was killed, exit code',
    async (t) => {
      const terminal = await startTmux(t, { env: { ...env, BOX: boxCommand } })
      terminal.type(`$BOX ssh ${name} --session work; echo code=$?`)
      terminal.press('Enter')
      await terminal.waitFor(`Session work on ${name}`)
      terminal.type("PS1='remote> '; stty size; echo TERM is $TERM")
      terminal.press('Enter')
      await terminal.waitFor(/^30 100$/m)
      await terminal.waitFor(/^TERM is \S+/m)
      await terminal.waitFor(/^remote>/m)

      terminal.type(`sh -c 'echo started; exec sleep 1000'; echo not reached`)
      terminal.press('Enter')
      await terminal.waitFor(/^started$/m)
      terminal.press('C-c')
      await terminal.waitFor(/\^C\s+remote>/)
      terminal.type('echo after; clear')
      terminal.press('Enter')
      await terminal.waitFor(/^remote>$/m)

      terminal.resize(80, 24)
      const isResized = () => {
        terminal.type('stty size')
        terminal.press('Enter')
        return /^24 80$/m.test(terminal.readScreen())
      }
      await waitUntil('the program has the new size', isResized)

      terminal.press('Enter')
      terminal.type('clear; echo kept on the screen')
      terminal.press('Enter')
      await terminal.waitFor(/^kept on the screen$/m)
      terminal.type('~d')
      await terminal.waitFor('detached from work; attach again: ')
      await terminal.waitFor(/^code=0$/m)
      t.match((await box('sessions', name)).stdout, /^work +\d+ +80x24 +0 /m)

      await restartCoordinator()
      terminal.type(`clear; $BOX attach ${name}; echo code=$?`)
      terminal.press('Enter')
      await terminal.waitFor(/^kept on the screen$/m)
      await terminal.waitFor(/^remote>/m)
      terminal.type('exit 42')
      terminal.press('Enter')
      await terminal.waitFor(/^code=42$/m)
      t.match(await box('sessions', name), { code: 0, stdout: '' })
    },
  )

  t.test('a session continues while the coordinator is killed and restarted', async (t) => {
    const terminal = await startTmux(t, { env: { ...env, BOX: boxCommand } })
    terminal.type(`$BOX exec -it ${name} -- 'echo ready; cat -n; exit 9'; echo code=$?`)
    terminal.press('Enter')
    await terminal.waitFor(/^ready$/m)
    terminal.type('first')
    terminal.press('Enter')
    await terminal.waitFor(/^ +1\s+first$/m)
    await restartCoordinator()
    clientProxy.reset()
    terminal.type('second')
    terminal.press('Enter')
    await terminal.waitFor(/^ +2\s+second$/m)
    agentProxy.reset()
    terminal.type('third')
    terminal.press('Enter')
    await terminal.waitFor(/^ +3\s+third$/m)
    terminal.press('C-d')
    const screen = await terminal.waitFor(/^code=9$/m)
    t.equal([...screen.matchAll(/^ +\d\s+\w+$/gm)].length, 3, 'each line arrived once')
  })

  const vim = (['vim', 'vi'] as const).find(findProgram)
  t.test(
    'vim: edit, detach, attach to the same screen, save',
    { skip: vim === undefined && requires('vim') },
    async (t) => {
      const terminal = await startTmux(t, { env: { ...env, BOX: boxCommand } })
      terminal.type(`$BOX exec -it ${name} -- ${vim} notes.txt; echo code=$?`)
      terminal.press('Enter')
      await terminal.waitFor(/"notes\.txt" \[New/)
      terminal.type('i')
      for (const line of ['first line', 'second line', 'third line']) {
        terminal.type(line)
        terminal.press('Enter')
      }
      await terminal.waitFor(/^third line$/m)
      const before = terminal.readScreen()
      // The tilde follows a newline.
      terminal.type('~d')
      await terminal.waitFor(/^code=0$/m)
      t.notMatch(terminal.readScreen(), 'second line', 'the alternate screen is left')

      terminal.type(`$BOX attach ${name}; echo attached=$?`)
      terminal.press('Enter')
      await terminal.waitFor(/^third line$/m)
      t.equal(terminal.readScreen(), before)
      terminal.press('Escape')
      terminal.type(':wq')
      terminal.press('Enter')
      await terminal.waitFor(/^attached=0$/m)
      t.match(await coordinator.exec(name, 'cat notes.txt'), {
        stdout: 'first line\nsecond line\nthird line\n\n',
      })
    },
  )

  t.test('a client that is killed leaves the session, and the terminal can be used again', async (t) => {
    const terminal = await startTmux(t, { env: { ...env, BOX: boxCommand } })
    terminal.type(`sh -c 'echo pid=$$; exec $BOX ssh ${name} -s kept'; echo code=$?`)
    terminal.press('Enter')
    await terminal.waitFor('Session kept')
    const pid = Number(/pid=(\d+)/.exec(terminal.readScreen())?.[1])
    process.kill(pid, 'SIGTERM')
    // The prompt of the box may precede it in the line.
    await terminal.waitFor(/code=143$/m)
    await waitUntil('the session has no client', async () => {
      const { sessions } = await coordinator.sendJson('GET', `/v1/box/${name}/terminal/sessions`)
      return sessions.some(({ session, clients }: TerminalSession) => session === 'kept' && clients === 0)
    })
    t.match((await box('sessions', name)).stdout, /^kept +\d+ +\S+ +0 /m)
    t.match(await box('sessions', name, '--kill', 'kept'), { code: 0, stderr: /^kept: terminated/ })
  })
}
