-- Inputs of runs that are attachments of a chat: found again when the chat, and the bytes with it, are removed.
set local role runner_owner;

alter table app.run_inputs
  -- Whose attachment the bytes are; null again once they are gone.
  add column chat_id uuid,
  add constraint run_inputs_chat_id_when_stored_check check (chat_id is null or storage_key is not null);
create index run_inputs_chat_id_idx on app.run_inputs (organization_id, chat_id) where chat_id is not null;

reset role;
