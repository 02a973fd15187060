// A synchronous command of a fake box: a shell on this machine.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { resolve } from 'node:path'
import type { ExecRequest } from '../../shared/api/exec.ts'

/** Ended with the request, as on a box. */
export async function runHere(request: ExecRequest, home: string, response: ServerResponse) {
  const now = new Date().toISOString()
  const cwd = resolve(home, request.cwd ?? '')
  const child = spawn('sh', ['-c', request.command], {
    cwd,
    env: { ...process.env, HOME: home, ...request.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const end = () => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, 'SIGKILL')
  response.once('close', end)
  let timedOut = false
  const timer = setTimeout(
    () => {
      timedOut = true
      end()
    },
    (request.timeoutSeconds ?? 30) * 1000,
  )
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  const [exitCode, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(timer)
  response.off('close', end)
  return {
    ok: true,
    type: 'exec.result',
    exitCode,
    signal: signal?.slice(3) ?? null,
    ...output,
    stdoutTruncated: false,
    stderrTruncated: false,
    timedOut,
    startedAt: now,
    finishedAt: now,
    cwd: request.cwd ?? '~',
  }
}
