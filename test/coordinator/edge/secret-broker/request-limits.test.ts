// Limits of the requests of a box to hosts of secrets.
import t from 'tap'
import { BrokerConnections } from '../../../../coordinator/edge/secret-broker/broker-connections.ts'
import {
  createRequestLimiter,
  MAX_IN_FLIGHT,
  REQUEST_RATE,
} from '../../../../coordinator/edge/secret-broker/request-limits.ts'

function createLimits() {
  const clock = { ms: 0, now: () => clock.ms }
  const connections = new BrokerConnections()
  const limiter = createRequestLimiter(clock, connections)
  /** Returns the code of the error. */
  function start(boxId: string, host: string): string | undefined {
    const connection = connections.open(boxId, host)
    connection.requests += 1
    const error = limiter.check(connection)
    if (error !== null) connections.delete(connection)
    return error?.code
  }
  return { clock, connections, start }
}

t.test('requests in flight are limited by host and by box', async (t) => {
  const { connections, start } = createLimits()
  for (let count = 0; count < MAX_IN_FLIGHT.perHost; count += 1) t.equal(start('a', 'one.test'), undefined)
  t.equal(start('a', 'one.test'), 'too_many_requests')
  for (let count = MAX_IN_FLIGHT.perHost; count < MAX_IN_FLIGHT.perBox; count += 1)
    t.equal(start('a', `host-${count}.test`), undefined)
  t.equal(start('a', 'other.test'), 'too_many_requests')
  t.equal(start('b', 'one.test'), undefined, 'another box')
  const [first] = connections.all
  if (first !== undefined) connections.delete(first)
  t.equal(start('a', 'other.test'), undefined, 'after a complete response')
})

t.test('a box sends a limited number of requests per second', async (t) => {
  const { clock, connections, start } = createLimits()
  const sendMany = (): number => {
    let admitted = 0
    while (start('a', 'one.test') === undefined) {
      admitted += 1
      for (const connection of connections.all) connections.delete(connection)
    }
    return admitted
  }
  t.equal(sendMany(), REQUEST_RATE.capacity)
  clock.ms += 1000
  t.equal(sendMany(), REQUEST_RATE.perSecond)
  t.equal(start('b', 'one.test'), undefined, 'another box')
})
