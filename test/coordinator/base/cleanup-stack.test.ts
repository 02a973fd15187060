// Stopping the coordinator: every step runs, whatever the others do.
import t from 'tap'
import { createCleanupStack } from '../../../coordinator/base/cleanup-stack.ts'

t.test('runs the steps in reverse order, also after one that fails and one that does not end', async (t) => {
  const calls: string[] = []
  const errors: string[] = []
  const cleanup = createCleanupStack({
    error: ({ err }: { err: Error }, message: string) => void errors.push(`${message}: ${err.message}`),
  } as Parameters<typeof createCleanupStack>[0])
  cleanup.add('close the first', () => calls.push('first'))
  cleanup.add('close the second', () => new Promise(() => undefined), 20)
  cleanup.add('close the third', () => {
    throw new Error('simulated failure')
  })
  cleanup.add('close the fourth', async () => calls.push('fourth'))
  await Promise.all([cleanup.close(), cleanup.close()])
  t.same(calls, ['fourth', 'first'])
  t.same(errors, [
    'failed to close the third; continuing to stop: simulated failure',
    'failed to close the second; continuing to stop: not finished after 20 ms',
  ])
})
