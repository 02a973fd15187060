// A coordinator with one box whose agent is in memory, and clients of the streams of prompts.

import type { Test } from 'tap'
import { type BoxWithFakeAgentOptions, startBoxWithFakeAgent } from '../support/box-with-fake-agent.ts'
import { createFakePromptAgent } from '../support/fake-prompt-agent.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'
import { openStream, type StreamReader } from './edge-stream-reader.ts'

export async function startBoxWithPrompts(t: Test, options: BoxWithFakeAgentOptions = {}) {
  const agent = createFakePromptAgent()
  const coordinator = await startBoxWithFakeAgent(t, agent.handler, {
    ...options,
    env: { ...limitsEnv({ edgeRequestsPerSecond: 1000 }), ...options.env },
  })
  const { box, edge, infra, key, url } = coordinator
  infra.tunnels.on('disconnected', agent.disconnect)
  const open = async (path: string, headers: Record<string, string> = {}): Promise<StreamReader> => {
    const reader = await openStream(`${url}/v1/box/${box.hostname}${path}`, {
      authorization: `Bearer ${key}`,
      ...headers,
    })
    t.teardown(reader.disconnect)
    return reader
  }
  return {
    ...coordinator,
    agent,
    send: (method: string, path: string, body?: unknown, headers = {}) =>
      edge(box.hostname, method, path, body, { headers }),
    open,
    /** Follows one run. */
    follow: (id: string, query = '', headers = {}) => open(`/prompts/${id}/events?follow=1${query}`, headers),
    /** Follows all runs. */
    followAll: (query = '', headers = {}) => open(`/prompts/events?follow=1${query}`, headers),
    async suspend() {
      await coordinator.api('POST', `/boxes/${box.id}/suspend`)
      await coordinator.waitForState(box.id, 'suspended')
    },
    /** Waits until `count` streams wait for an event. */
    waitForPolls: (count: number) =>
      waitUntil(`${count} streams wait for an event`, () => agent.waiting === count),
  }
}

/** The events as `event:id`, and `event:seq` where the data has one. */
export const namesOf = ({ events }: Pick<StreamReader, 'events'>): string[] =>
  events.map(({ event, data }) => (data.seq === undefined ? event : `${event} ${data.seq}`))
