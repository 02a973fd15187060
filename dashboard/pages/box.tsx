// The page of one box.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { mayUseSecrets } from '../data/access.ts'
import { formatAge } from '../data/age.ts'
import { formatLabels, formatState } from '../data/items.ts'
import { boxes, getClient, now, session } from '../data/live.ts'
import { query, replacePath } from '../data/navigation.ts'
import { formatActor } from '../data/people.ts'
import { BOX_TABS, type BoxTab, formatBoxPath, isBoxId } from '../data/routes.ts'
import { describeLog } from '../data/state-problems.ts'
import { hasUnsent } from '../data/unsent.ts'
import { showHidden } from '../data/visible-text.ts'
import { BoxActions } from '../views/box-actions.tsx'
import { BoxSettings } from '../views/box-settings.tsx'
import { Command } from '../views/command.tsx'
import { lazy } from '../views/lazy.tsx'
import { LocalTime } from '../views/local-time.tsx'
import { Problem } from '../views/problem.tsx'
import { useMemberNames } from '../views/use-member-names.ts'
import { BOX_TAB_PAGES } from './box-tabs.ts'
import { DeletedBoxPage } from './deleted-box.tsx'

const BoxSecrets = lazy(async () => (await import('../views/secrets/box-secrets.tsx')).BoxSecrets)

/** The attempts and errors of a job change without a change of the box. */
const JOB_POLL_MS = 5_000

export function BoxPage({ name, tab }: { name: string; tab: BoxTab }) {
  useEffect(() => {
    const label = tab === 'overview' ? '' : ` · ${BOX_TABS[tab]}`
    document.title = `${showHidden(name)}${label} · Boxwood`
  }, [name, tab])
  const { box, isGone } = useNamedBox(name, tab)
  if (!box && !isGone && boxes.value !== null && isBoxId(name)) return <DeletedBoxPage key={name} id={name} />
  return (
    <>
      <h1 tabIndex={-1}>{showHidden(name)}</h1>
      <Tabs name={name} current={tab} />
      <div role="status">
        {isGone && <p class="problem">The box was deleted, or is not yours any more.</p>}
      </div>
      {box ? (
        <TabPage key={box.id} box={box} tab={tab} />
      ) : (
        !isGone && (
          <p>
            {boxes.value === null
              ? 'Loading the box.'
              : 'There is no box with this name, or it is not yours.'}
          </p>
        )
      )}
    </>
  )
}

/**
 * The box with this name or id. Another user may rename the box: the page then gets its new name, as it does when it was opened by the id. A page with a text that is not
 * sent stays when the box is deleted.
 */
function useNamedBox(name: string, tab: BoxTab): { box: Box | undefined; isGone: boolean } {
  const last = useRef<{ name: string; box: Box } | null>(null)
  const all = boxes.value
  const named = all && (all.get(name) ?? [...all.values()].find(({ hostname }) => hostname === name))
  if (named) last.current = { name, box: named }
  else if (last.current?.name !== name) last.current = null
  const previous = last.current?.box
  const box = named ?? (previous && (all?.get(previous.id) ?? previous))
  const isGone = box !== undefined && all !== null && !all.has(box.id)
  const newName = box !== undefined && !isGone && box.hostname !== name ? box.hostname : null
  useEffect(() => {
    if (newName !== null) replacePath(`${formatBoxPath(newName, tab)}${query.value}`)
  }, [newName])
  return { box: isGone && !hasUnsent() ? undefined : box, isGone }
}

function Tabs({ name, current }: { name: string; current: BoxTab }) {
  const tabs = Object.keys(BOX_TABS) as BoxTab[]
  if (tabs.length === 1) return null
  return (
    <nav aria-label="Pages of the box" class="tabs">
      {tabs.map((tab) => (
        <a key={tab} href={formatBoxPath(name, tab)} aria-current={tab === current ? 'page' : undefined}>
          {BOX_TABS[tab]}
        </a>
      ))}
    </nav>
  )
}

function TabPage({ box, tab }: { box: Box; tab: BoxTab }) {
  if (tab === 'overview') return <Detail box={box} />
  const Page = BOX_TAB_PAGES[tab]
  return <Page key={tab} box={box} />
}

function Detail({ box }: { box: Box }) {
  const detail = useSignal<BoxDetail | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const isWorking = (detail.value?.job ?? null) !== null
  // `box` is another object after each change.
  useEffect(() => {
    let isCurrent = true
    const load = () =>
      getClient()
        .loadBox(box.id)
        .then(
          (response) => {
            if (!isCurrent) return
            detail.value = response
            error.value = null
          },
          (reason) => {
            if (isCurrent) error.value = toBoxwoodError(reason)
          },
        )
    void load()
    const timer = isWorking
      ? setInterval(() => document.visibilityState === 'visible' && void load(), JOB_POLL_MS)
      : undefined
    return () => {
      isCurrent = false
      clearInterval(timer)
    }
  }, [box, isWorking])
  return (
    <>
      <p class="tools">
        <span class={`state ${box.observedState}`}>{formatState(box.observedState)}</span>
        <Command text={`box show ${box.hostname}`} />
        <Command text={`box ssh ${box.hostname}`} />
        <a href={`desktop?box=${encodeURIComponent(box.hostname)}`}>Desktop</a>
      </p>
      <BoxActions box={box} />
      <BoxSettings box={box} />
      <Problem error={error.value} />
      {detail.value === null ? (
        <p>Loading the details.</p>
      ) : (
        <Figures detail={detail.value}>
          {session.value !== null &&
            mayUseSecrets(session.value.user.role) &&
            box.desiredState !== 'terminated' && <BoxSecrets box={box} />}
        </Figures>
      )}
    </>
  )
}

/** @param children shown before the events */
function Figures({ detail, children }: { detail: BoxDetail; children: ComponentChildren }) {
  const { box, state, job, vitals, environment, envVars, events } = detail
  const age = (at: string) => `${formatAge(now.value - Date.parse(at))} ago`
  const viewer = { userId: session.value?.user.id ?? null, names: useMemberNames() }
  return (
    <>
      {job !== null && (
        <section aria-label="Job">
          <h2>Job</h2>
          <p>
            {job.op}, step {showHidden(job.step)}, attempt {job.attempt}
            {job.nextRetryAt !== null && (
              <>
                , next attempt at <LocalTime at={job.nextRetryAt} />
              </>
            )}
          </p>
          {job.lastError !== null && <p class="problem">{showHidden(job.lastError)}</p>}
          {job.lastError !== null && (
            <p>
              {showHidden(describeLog(box))} What boxes need is checked by <Command text="box doctor" />
            </p>
          )}
        </section>
      )}
      <h2>Details</h2>
      <dl>
        <Term name="State since">
          <time dateTime={state.since}>{age(state.since)}</time>,{' '}
          {state.connected ? 'connected' : 'not connected'}
        </Term>
        <Term name="Id">{box.id}</Term>
        <Term name="Owner">{box.ownerUserId === session.value?.user.id ? 'you' : box.ownerUserId}</Term>
        <Term name="Kind">{box.kind}</Term>
        <Term name="Tier">{box.tier}</Term>
        <Term name="Region">{box.region}</Term>
        {box.image !== null && <Term name="Image">{showHidden(box.image)}</Term>}
        <Term name="Isolation">
          {box.isolation === null
            ? 'not known yet'
            : `${box.isolation.level}, network ${box.isolation.network}`}
        </Term>
        {vitals && (
          <Term name="Usage">
            CPU {formatPercent(vitals.cpu_pct)}, memory {formatPercent(vitals.mem_pct)}, disk{' '}
            {formatPercent(vitals.disk_pct)}
          </Term>
        )}
        {vitals && <Term name="Agent">{showHidden(vitals.agent_version)}</Term>}
        <Term name="Labels">{showHidden(formatLabels(box).join(', ')) || 'none'}</Term>
        <Term name="Restricted">{box.restricted ? 'yes: it gets no secrets' : 'no'}</Term>
        <Term name="Automatic pause">
          {box.autoPauseMin === null ? 'never' : `after ${box.autoPauseMin} idle minutes`}
          {box.pauseAt !== null && (
            <>
              ; suspended at <LocalTime at={box.pauseAt} />
            </>
          )}
        </Term>
        {box.deleteAt !== null && (
          <Term name="Deletion">
            with its files, at <LocalTime at={box.deleteAt} />
          </Term>
        )}
        <Term name="Environment">
          {environment ? `${showHidden(environment.name)}, version ${environment.versionNo}` : 'none'}
        </Term>
        <Term name="Variables">
          {envVars.length === 0 ? 'none' : envVars.map((variable) => showHidden(variable.name)).join(', ')}
        </Term>
      </dl>
      {children}
      <h2>Events</h2>
      <ol class="events">
        {events.map((event) => (
          <li key={event.id}>
            <time dateTime={event.at}>{age(event.at)}</time> {formatState(event.toState)}:{' '}
            {showHidden(event.reason)}
            {event.code !== null && <code>{event.code}</code>}{' '}
            <small>{showHidden(formatActor(event.actor, viewer))}</small>
          </li>
        ))}
      </ol>
    </>
  )
}

function Term({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

const formatPercent = (value: number | null): string => (value === null ? '–' : `${Math.round(value)} %`)
