// The listening ports of a box, and the links to them.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Box } from '../../../shared/api/boxes.ts'
import type { PortAudience, PortShare, PortShares } from '../../../shared/api/port-shares.ts'
import { formatAge } from '../../data/age.ts'
import { formatCount } from '../../data/format-count.ts'
import { getClient, now } from '../../data/live.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { changeQuery, query } from '../../data/navigation.ts'
import {
  AUDIENCES,
  formatShareCommand,
  isWebUrl,
  LIFETIMES,
  listAudiences,
  listPortRows,
  type PortRow,
  parsePort,
} from '../../data/ports.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Command } from '../command.tsx'
import { focusHeading } from '../focus-heading.ts'
import { FormDialog } from '../form-dialog.tsx'
import { useLoaded } from '../loaded.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'

const POLL_MS = 5_000
/** A box confirms its ports with each heartbeat. */
const OLD_MS = 60_000

export function Ports({ box }: { box: Box }) {
  const { value, error, reload } = useLoaded(() => getClient().loadPortShares(box.id), [box], POLL_MS)
  const action = useAction()
  /** The text of the port in the dialog; null: it is closed. */
  const sharing = useSignal<string | null>(new URLSearchParams(query.value).get('share'))
  const created = useSignal<PortShare | null>(null)
  const focused = useRef<Element | null>(null)
  useLayoutEffect(() => {
    if (focused.current?.isConnected === false && document.activeElement === document.body) focusHeading()
  })
  if (value === null)
    return (
      <>
        <Problem error={error} />
        {error === null && <Skeleton label="Loading the ports." rows={2} />}
      </>
    )
  const revoke = (share: PortShare) =>
    action.run(async () => {
      await getClient().revokePortShare(share.id)
      if (created.value?.id === share.id) created.value = null
      void reload()
    })
  const rows = listPortRows(value)
  const { allowed, refusals } = listAudiences(value.modes)
  const open = (port: string) => () => {
    sharing.value = port
  }
  return (
    <div
      onFocusCapture={({ target }) => {
        focused.current = target as Element
      }}
    >
      <ListeningNote box={box} listening={value.listening} />
      <Problem error={error} />
      <Problem error={action.error.value} />
      {created.value !== null && <NewLink share={created.value} />}
      {rows.length === 0 ? (
        <p>No process is known to listen on a TCP port, and no port is shared.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Port</th>
              <th scope="col">Process</th>
              <th scope="col">Link</th>
              <th scope="col">Action</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <PortLine
                key={`${row.port} ${row.pid}`}
                row={row}
                onShare={allowed.length === 0 ? null : open(String(row.port))}
                revoke={revoke}
              />
            ))}
          </tbody>
        </table>
      )}
      {allowed.length > 0 && (
        <p>
          <button type="button" onClick={open('')}>
            Share a port
          </button>
        </p>
      )}
      {allowed.length === 0 &&
        refusals.map((refusal) => <p key={refusal}>A link is not possible for {refusal}</p>)}
      {sharing.value !== null && allowed.length > 0 && (
        <ShareDialog
          box={box}
          port={sharing.value}
          allowed={allowed}
          refusals={refusals}
          onClose={() => {
            sharing.value = null
            changeQuery({ share: null })
          }}
          onCreated={(share) => {
            created.value = share
            if (sharing.value !== null) requestAnimationFrame(focusHeading)
            void reload()
          }}
        />
      )}
    </div>
  )
}

function ListeningNote({ box, listening }: { box: Box; listening: PortShares['listening'] }) {
  if (listening === null)
    return box.observedState === 'running' ? (
      <p>The box has not reported its ports in the last minutes.</p>
    ) : null
  const age = now.value - Date.parse(listening.at)
  return age > OLD_MS ? <p>The list is {formatAge(age)} old.</p> : null
}

/** The secret of a link for anyone is shown only once. */
function NewLink({ share }: { share: PortShare }) {
  return (
    <p role="status" class="card">
      The link to port {share.port}: <Command text={share.url ?? share.origin} />
      {share.access === 'anyone' && ' It has a secret, which is shown only now.'}
    </p>
  )
}

type PortLineProps = {
  row: PortRow
  onShare: (() => void) | null
  revoke(share: PortShare): Promise<boolean>
}

function PortLine({ row, onShare, revoke }: PortLineProps) {
  const { port, process, pid, isListening, share } = row
  const url = share?.url ?? null
  return (
    <tr>
      <th scope="row">{port}</th>
      <td data-label="Process">
        {isListening ? (process === null ? 'unknown' : showHidden(process)) : 'does not listen'}
        {pid !== null && ` (${pid})`}
      </td>
      <td data-label="Link">
        {share === null ? (
          'none'
        ) : (
          <>
            {url !== null && isWebUrl(url) ? (
              <a href={url} target="_blank" rel="noopener noreferrer">
                {url}
              </a>
            ) : (
              showHidden(share.origin)
            )}{' '}
            <small>
              {AUDIENCES[share.access]}
              {share.expiresAt !== null && `, until ${formatLocalTime(Date.parse(share.expiresAt))}`}, opened{' '}
              {formatCount(share.openCount, 'time')}
            </small>
          </>
        )}
      </td>
      <td>
        {share !== null ? (
          <button type="button" aria-label={`Revoke the link to ${port}`} onClick={() => revoke(share)}>
            Revoke
          </button>
        ) : (
          onShare !== null && (
            <button type="button" aria-label={`Share ${port}`} onClick={onShare}>
              Share
            </button>
          )
        )}
      </td>
    </tr>
  )
}

type ShareDialogProps = {
  box: Box
  port: string
  allowed: readonly PortAudience[]
  refusals: readonly string[]
  onClose(): void
  onCreated(share: PortShare): void
}

function ShareDialog({ box, port, allowed, refusals, onClose, onCreated }: ShareDialogProps) {
  const audiences = allowed.map((value) => ({ value, label: AUDIENCES[value] }))
  const lifetimes = Object.entries(LIFETIMES).map(([label, value]) => ({ value: String(value), label }))
  return (
    <FormDialog
      title="Share a port"
      fields={[
        { name: 'port', label: 'Port', value: port },
        { name: 'access', label: 'Who may open the link', options: audiences, value: allowed[0] ?? '' },
        {
          name: 'expiresIn',
          label: 'The link works for',
          options: lifetimes,
          value: String(LIFETIMES['7 days']),
          isShown: ({ access }) => access !== 'members',
        },
        {
          name: 'rewriteHost',
          label: 'Name of the server in requests',
          hint: 'Some development servers refuse requests with another name than localhost.',
          options: [
            { value: '', label: 'the name in the link' },
            { value: 'rewrite', label: 'localhost' },
          ],
          isAdvanced: true,
        },
      ]}
      submitLabel="Create the link"
      accepts={(values) => parsePort(values.port ?? '') !== null}
      formatCommand={({ port: text = '', access = '', expiresIn = '', rewriteHost }) =>
        formatShareCommand(box.hostname, text, access, expiresIn) + (rewriteHost ? ' --rewrite-host' : '')
      }
      onClose={onClose}
      submit={async ({ port: text = '', access, expiresIn, rewriteHost }) => {
        const parsed = parsePort(text)
        if (parsed === null) return
        const { share } = await getClient().createPortShare(box.id, {
          port: parsed,
          access: access as PortAudience,
          ...(access !== 'members' && { expiresIn: Number(expiresIn) }),
          ...(rewriteHost && { rewriteHost: true }),
        })
        onCreated(share)
      }}
    >
      {refusals.map((refusal) => (
        <p key={refusal}>
          <small>Not possible: {refusal}</small>
        </p>
      ))}
    </FormDialog>
  )
}
