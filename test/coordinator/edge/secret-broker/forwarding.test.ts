// Requests of programs on a box to a host of a secret: they work as without the broker, and have the value.

import t from 'tap'
import { send } from '../../../support/broker/send.ts'
import { HOST, PLACEHOLDER, startBroker, VALUE } from '../../../support/broker/start-broker.ts'

t.test('the host gets the value, and the program sees only asterisks', async (t) => {
  const broker = await startBroker(t, {
    listener: (request, response) => {
      response.setHeader('X-Echo', request.headers.authorization ?? '')
      response.end(JSON.stringify(request.rawHeaders))
    },
  })
  const response = await send(broker, {
    headers: { authorization: `Bearer ${PLACEHOLDER}`, 'user-agent': PLACEHOLDER },
  })
  t.equal(response.statusCode, 200)
  t.equal(response.headers['x-echo'], `Bearer ${'*'.repeat(VALUE.length)}`)
  t.match(response.text, `Bearer ${'*'.repeat(VALUE.length)}`)
  t.match(response.text, PLACEHOLDER, 'the User-Agent is not changed')
  t.same(broker.upstream.serverNames, [HOST])
  t.same(broker.secrets.uses, [{ secretId: 'sec_1', boxId: broker.box.boxId, host: HOST }])
})
