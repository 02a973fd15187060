// The dialog of a page: at most one is open. It closes when its request has succeeded.
import { useSignal } from '@preact/signals'
import { FormDialog, type FormDialogProps } from './form-dialog.tsx'

export type DialogProps = Omit<FormDialogProps, 'onClose'>

export function useDialog() {
  const current = useSignal<DialogProps | null>(null)
  const shown = current.value
  return {
    open(props: DialogProps) {
      current.value = props
    },
    view: shown && (
      <FormDialog
        {...shown}
        onClose={() => {
          // The event may arrive when another dialog is open already.
          if (current.value === shown) current.value = null
        }}
        submit={async (values, key) => {
          await shown.submit(values, key)
          if (current.value === shown) current.value = null
        }}
      />
    ),
  }
}

export type Dialog = ReturnType<typeof useDialog>
