// Measures prompts with a coding agent that responds immediately: what a run costs beyond its program, how long an event takes
// to the client, and the memory of the agent after many runs. `node bench/prompts.ts` runs only this benchmark.
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { createParser } from 'eventsource-parser'
import { findAgentPid, readResidentMiB } from '../test/support/find-agent-process.ts'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { formatNumber, measureRuns, median, quantile } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const WARM_UP_RUNS = 10
const RUNS = 100
const EVENTS = 500

/**
 * A program that replaces Claude Code, with its form of output. The prompt is a number of events: each has the time of
 * CLOCK_MONOTONIC in seconds, 5 ms apart.
 */
const PROGRAM = `#!/usr/bin/perl
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);
$| = 1;
if (($ARGV[0] // '') eq '--version') { print "2.1.0 (Claude Code)\\n"; exit }
my $events = <STDIN> + 0;
print '{"type":"system","subtype":"init","session_id":"6f1cd5d0-0000-4000-8000-000000000000"}', "\\n";
for (1..$events) {
  printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%.6f"}]}}' . "\\n", clock_gettime(CLOCK_MONOTONIC);
  sleep(0.005);
}
print '{"type":"result","subtype":"success","is_error":false,"result":"done"}', "\\n";
`

const SETUP = `mkdir -p ~/.local/bin ~/.claude
cat >~/.local/bin/claude && chmod 755 ~/.local/bin/claude
echo '{"claudeAiOauth":{"accessToken":"bench"}}' >~/.claude/.credentials.json`

/** Runs the program without Boxwood. */
const runProgram = (): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn('perl', ['-e', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdout.resume()
    child.once('error', reject)
    child.once('close', () => resolve())
    child.stdin.end('0')
  })

/** Resolves when the client has the final event. @param onEvent receives the text of each event */
async function runPrompt(
  boxwood: Boxwood,
  prompt: string,
  onEvent: (text: string, receivedAt: number) => void = () => undefined,
): Promise<void> {
  const path = `/v1/box/${boxwood.box.hostname}/prompts`
  const body = Buffer.from(JSON.stringify({ provider: 'claude', prompt, new: true }))
  const started = await boxwood.send('POST', path, body, { 'content-type': 'application/json' })
  const { run } = JSON.parse(await text(started))
  const stream = await boxwood.send('GET', `${path}/${run.id}/events?follow=1`)
  let receivedAt = 0
  let status: unknown
  const parser = createParser({
    onEvent({ event, data }) {
      if (event === 'done') status = JSON.parse(data).run.status
      else if (event === 'prompt') onEvent(JSON.parse(data).text ?? '', receivedAt)
    },
  })
  for await (const chunk of stream) {
    receivedAt = Number(process.hrtime.bigint()) / 1e6
    parser.feed(chunk.toString('utf8'))
  }
  if (status !== 'done') throw new Error(`the run ended as ${status}`)
}

export async function benchPrompts(boxwood: Boxwood): Promise<Table> {
  await boxwood.exec(`cat >setup.pl <<'PROGRAM'\n${PROGRAM}PROGRAM\n(${SETUP}) <setup.pl`)
  const memoryBefore = readResidentMiB(boxwood.agentPid)
  const prompt = () => runPrompt(boxwood, '0')
  await measureRuns(WARM_UP_RUNS, 1, prompt)
  const runMs: number[] = []
  const programMs: number[] = []
  // The candidates take turns.
  for (let i = 0; i < RUNS; i++) {
    runMs.push(...(await measureRuns(1, 1, prompt)))
    programMs.push(...(await measureRuns(1, 1, runProgram)))
  }
  const memoryAfter = readResidentMiB(findAgentPid(boxwood.box.id) ?? boxwood.agentPid)
  const latenciesMs: number[] = []
  await runPrompt(boxwood, String(EVENTS), (text, receivedAt) => {
    if (/^\d/.test(text)) latenciesMs.push(receivedAt - Number(text) * 1000)
  })
  return {
    title: 'Prompts',
    columns: ['', 'p50', 'p99'],
    rows: [
      ['a run, from `POST /prompts` to its final event (ms)', ...formatQuantiles(runMs)],
      ['the program of the run alone (ms)', ...formatQuantiles(programMs)],
      ['what the run adds (ms)', formatNumber(median(runMs) - median(programMs)), ''],
      ['an event, from the write to the client (ms)', ...formatQuantiles(latenciesMs)],
      ['memory of the agent before the runs (MiB)', formatNumber(memoryBefore), ''],
      [`memory of the agent after ${RUNS + WARM_UP_RUNS} runs (MiB)`, formatNumber(memoryAfter), ''],
    ],
  }
}

const formatQuantiles = (samples: number[]) => [
  formatNumber(median(samples)),
  formatNumber(quantile(samples, 0.99)),
]

if (import.meta.main) {
  const boxwood = await startBoxwood()
  try {
    console.log(formatMarkdown(await benchPrompts(boxwood)))
  } finally {
    await boxwood.close()
  }
}
