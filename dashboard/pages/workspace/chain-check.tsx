// Verifies the hash chain of the audit log in the browser.

import { useSignal } from '@preact/signals'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import { createSha256, type Verification, verifyChain } from '../../data/audit-chain.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Command } from '../../views/command.tsx'
import { Problem } from '../../views/problem.tsx'

/** A button that verifies the log, and what it has found. */
export function useChainCheck() {
  const progress = useSignal<number | null>(null)
  const result = useSignal<Verification | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const sha256 = createSha256(crypto.subtle as SubtleCrypto | undefined)
  async function verify() {
    if (sha256 === null || progress.value !== null) return
    progress.value = 0
    result.value = null
    error.value = null
    try {
      result.value = await verifyChain(
        (after) => getWorkspaceClient().loadAuditChain(after),
        sha256,
        (events) => {
          progress.value = events
        },
      )
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    } finally {
      progress.value = null
    }
  }
  return {
    button: sha256 !== null && (
      <button type="button" class="quiet" onClick={() => void verify()}>
        Verify the log
      </button>
    ),
    result: (
      <section aria-label="Hash chain">
        {sha256 === null && (
          <small>
            The browser verifies the log only on a page over HTTPS or from its own machine:{' '}
            <Command text="box audit verify" />
          </small>
        )}
        <div role="status">
          {progress.value !== null && <p>{progress.value} events are intact so far.</p>}
          {result.value !== null && <Result result={result.value} />}
        </div>
        <Problem error={error.value} />
      </section>
    ),
  }
}

function Result({ result: { events, head, problem } }: { result: Verification }) {
  if (problem !== null)
    return (
      <p class="problem">
        {problem} {events} events before it are intact.
      </p>
    )
  return (
    <p>
      All {events} events are intact. Note the head to compare it later:{' '}
      <Command text={`box audit verify --head ${head.id}:${head.hash}`} />
    </p>
  )
}
