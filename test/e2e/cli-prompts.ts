// box prompt, prompts, conversations and interrupt with a real coordinator and box, and a scripted coding agent.
import type { ChildProcess } from 'node:child_process'
import t from 'tap'
import { runBox } from '../cli/run-box.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const SESSION = '5e551011-0000-4000-8000-000000000001'

/** Repeats its prompt. The prompt `wait` waits until it is interrupted, `fail` fails. */
const FAKE_CLAUDE = `#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.329 (Claude Code)'; exit 0; fi
prompt=$(cat)
text() { echo '{"type":"assistant","message":{"content":[{"type":"text","text":"'"$1"'"}]}}'; }
echo '{"type":"system","subtype":"init","session_id":"${SESSION}"}'
case $prompt in
  wait) text waiting; trap 'exit 0' INT; while :; do sleep 0.05; done ;;
  fail) echo '{"type":"result","subtype":"success","is_error":true,"result":"no such model"}'; exit 1 ;;
esac
echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}}'
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"}]}]}}'
case "$*" in *--resume*) text "again: $prompt" ;; *) text "$prompt" ;; esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"end"}'
`

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
  t.match(await box(['prompts', name]), {
    stdout: new RegExp(`^${id} +claude +- +interrupted .* wait$`, 'm'),
  })
  t.match(await box(['prompts', name, id]), { stdout: /\n\nPrompt:\nwait\n/ })
  t.match(await box(['conversations', name]), { stdout: /^cv_\w+ +claude +- +done +2 +0 .* second$/m })
  t.match(await box(['interrupt', name]), { code: 0, stderr: `No runs in progress on ${name}.\n` })

  const interrupted = await box(['prompt', name, 'wait'], {
    stdin: null,
    onSpawn: (child: ChildProcess) => child.stdout?.once('data', () => child.kill('SIGINT')),
  })
  t.match(interrupted, { code: 130, stdout: 'waiting\n', stderr: /The run was interrupted/ })
})
