// Waits for the first output of a child process.
import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'

/** Rejects when stdout ends without output: without this, the test would end as unfinished when the child exits. */
export function firstOutput(
  child: ChildProcessByStdio<Writable | null, Readable, Readable | null>,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.stdout.once('data', resolve)
    child.once('close', (code, signal) =>
      reject(new Error(`${child.spawnfile} exited with ${code ?? signal} before its first output`)),
    )
  })
}
