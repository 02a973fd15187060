// The stop of a coordinator whose receiver of traces does not respond.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { trace } from '@opentelemetry/api'
import t from 'tap'
import { createCleanupStack } from '../../../../coordinator/base/cleanup-stack.ts'
import { loadConfig } from '../../../../coordinator/server/config.ts'
import { startTelemetry } from '../../../../coordinator/server/telemetry/telemetry.ts'
import { systemClock } from '../../../../shared/clock.ts'

t.test('spans that cannot be sent are a warning without a stack trace', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const sockets = new Set<{ destroy(): void }>()
  silent.on('connection', (socket) => sockets.add(socket))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = endpoint
  // Longer than the coordinator waits. With the default, this process would exit only after ten seconds.
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '2000'
  const lines: unknown[][] = []
  const log = {
    info: () => undefined,
    error: (...args: unknown[]) => void lines.push(['error', ...args]),
    warn: (...args: unknown[]) => void lines.push(['warn', ...args]),
  }
  const cleanup = createCleanupStack(log)
  const config = loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
  await startTelemetry(config, { clock: systemClock, cleanup, log })
  trace.getTracer('test').startSpan('request').end()
  await cleanup.close()
  t.strictSame(lines, [
    ['warn', { reason: 'the receiver did not respond within 1000 ms' }, 'the last spans were not sent'],
  ])
})
