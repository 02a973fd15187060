// The page of a deleted box, which its id opens: the commands, as long as their records are stored.
import { useEffect } from 'preact/hooks'
import { getClient } from '../data/live.ts'
import { showHidden } from '../data/visible-text.ts'
import { useLoaded } from '../views/loaded.tsx'
import { LocalTime } from '../views/local-time.tsx'
import { Problem } from '../views/problem.tsx'
import { BOX_TAB_PAGES } from './box-tabs.ts'

const { commands: Commands } = BOX_TAB_PAGES

export function DeletedBoxPage({ id }: { id: string }) {
  const { value, error } = useLoaded(() => getClient().loadBox(id), [id])
  const title = value === null ? 'Deleted box' : showHidden(value.box.hostname)
  useEffect(() => {
    document.title = `${title} · Boxwood`
  }, [title])
  const isMissing = error?.code === 'not_found'
  return (
    <>
      <h1 tabIndex={-1}>{title}</h1>
      {isMissing && <p>The records of this box are not stored any more, or it is not yours.</p>}
      {!isMissing && <Problem error={error} />}
      {value === null && error === null && <p>Loading the box.</p>}
      {value !== null && !isMissing && (
        <>
          <p>
            The box was deleted at <LocalTime at={value.state.since} />. These are its commands.
          </p>
          <Commands box={value.box} />
        </>
      )}
    </>
  )
}
