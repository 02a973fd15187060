// box prompt and interrupt with a scripted coding agent on a real box. test/cli/prompt*.test.ts test the output of the commands.
import type { ChildProcess } from 'node:child_process'
import t from 'tap'
import { runBox } from '../cli/run-box.ts'
import { FAKE_CLAUDE, SESSION } from '../support/fake-claude.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

t.test('sends prompts, continues a conversation, waits in the queue, and interrupts', async (t) => {
  const { url, key, box: fig } = sharedCoordinator
  const name = fig.hostname
  const box = (args: string[], options = {}) =>
    runBox(url, args, { env: { BOXWOOD_API_KEY: key }, ...options })
  const prompt = (...args: string[]) => box(['prompt', name, ...args], { stdin: null })

  const install = 'mkdir -p ~/.local/bin && cat >~/.local/bin/claude && chmod +x ~/.local/bin/claude'
  t.match(await box(['exec', name, install], { stdin: FAKE_CLAUDE }), { code: 0 })
  t.match(await prompt('hello'), {
    code: 1,
    stderr: new RegExp(`box secrets set ANTHROPIC_API_KEY[^]*box ssh ${name}`),
  })
  t.match(await box(['env', name, 'ANTHROPIC_API_KEY=test']), { code: 0 })

  t.same(await prompt('hello', 'world'), {
    code: 0,
    stdout: 'hello world\n',
    stderr: '> Bash ls\n  a\n',
  })
  t.match(await prompt('-c', 'more'), { code: 0, stdout: 'again: more\n' })
  t.match(await prompt('fail'), { code: 1, stdout: '', stderr: /no such model/ })
  const json = (await prompt('--json', 'as JSON')).stdout.trimEnd().split('\n')
  t.match(JSON.parse(json[0] ?? ''), { type: 'run', run: { prompt: 'as JSON' } })
  t.match(JSON.parse(json[1] ?? ''), { seq: 1, type: 'session', raw: { session_id: SESSION } })
  t.match(JSON.parse(json.at(-1) ?? ''), { type: 'run.done', run: { status: 'done' } })

  const id = (await prompt('-d', 'wait')).stdout.trim()
  t.match(await prompt('second'), {
    code: 1,
    stderr: new RegExp(`${id}.*--queue waits.*\\(prompt_in_progress\\)`),
  })
  const queued = prompt('--queue', 'second')
  await waitUntil('the prompt is in the queue', async () =>
    (await box(['prompts', name, '-q', '--filter', 'status=queued'])).stdout.startsWith('run_'),
  )
  t.match(await box(['interrupt', name, id.slice(0, 14)]), {
    code: 0,
    stderr: `${id}: interrupted (SIGINT)\n`,
  })
  t.match(await queued, { code: 0, stdout: 'again: second\n', stderr: /^queued: position 1, while run_/ })
  t.match(await box(['prompts', name, id, '-f']), { code: 130, stdout: 'waiting\n' })
  t.match(await box(['conversations', name]), { stdout: /^cv_\w+ +claude +- +done +2 +0 .* second$/m })

  const interrupted = await box(['prompt', name, 'wait'], {
    stdin: null,
    onSpawn: (child: ChildProcess) => child.stdout?.once('data', () => child.kill('SIGINT')),
  })
  t.match(interrupted, { code: 130, stdout: 'waiting\n', stderr: /The run was interrupted/ })
})
