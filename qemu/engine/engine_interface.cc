// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstring>
#include <memory>

#include "qemu/engine/engine_class.h"

using tern::Command;

struct tern_engine final : tern::Engine {
	using Engine::Engine;
};

tern_engine *tern_engine_new(const tern_engine_config *config, const tern_engine_ops *ops,
                             void *opaque)
{
	auto engine = std::make_unique<tern_engine>(*config, *ops, opaque, config->first);
	return engine->usable() ? engine.release() : nullptr;
}

void tern_engine_free(tern_engine *engine)
{
	delete engine;
}

bool tern_engine_share_ram(tern_engine *engine, int fd, uint64_t size)
{
	return engine->share_ram(fd, size);
}

const char *tern_engine_connect(tern_engine *engine)
{
	return engine->connect();
}

void tern_engine_run(tern_engine *engine)
{
	engine->thread();
}

void tern_engine_stop(tern_engine *engine)
{
	engine->stop();
}

void tern_engine_write_register(tern_engine *engine, uint32_t offset, uint32_t value)
{
	engine->post({.kind = Command::Kind::WriteRegister, .offset = offset, .value = value});
}

void tern_engine_doorbell(tern_engine *engine, uint32_t page, uint32_t offset, uint64_t value)
{
	engine->post(
	        {.kind = Command::Kind::Doorbell, .page = page, .offset = offset, .value = value});
}

void tern_engine_set_cable(tern_engine *engine, bool plugged)
{
	engine->post({.kind = Command::Kind::SetCable, .value = plugged});
}

uint32_t tern_engine_read_register(tern_engine *engine, uint32_t offset)
{
	return engine->call({.kind = Command::Kind::ReadRegister, .offset = offset});
}

uint64_t tern_engine_clock(tern_engine *engine)
{
	return engine->clock();
}

void tern_engine_reset(tern_engine *engine)
{
	engine->reset();
}

void tern_engine_flush(tern_engine *engine)
{
	engine->call({.kind = Command::Kind::Flush});
}

void tern_engine_pause(tern_engine *engine, bool pause)
{
	engine->call({.kind = pause ? Command::Kind::Pause : Command::Kind::Resume});
}

char *tern_engine_describe(tern_engine *engine, int64_t qpn)
{
	const std::string text = engine->describe(qpn);
	return text.empty() ? nullptr : strdup(text.c_str());
}

bool tern_engine_fail_qp(tern_engine *engine, uint32_t qpn)
{
	return engine->call({.kind = Command::Kind::FailQp, .value = qpn}) == 1;
}

bool tern_engine_slow_qp(tern_engine *engine, uint32_t qpn, uint32_t rate)
{
	return engine->call({.kind = Command::Kind::SlowQp, .offset = rate, .value = qpn}) == 1;
}

void tern_engine_hold_commands(tern_engine *engine, bool hold, uint32_t answers)
{
	engine->call({.kind = Command::Kind::HoldCommands, .offset = answers, .value = hold});
}

void tern_engine_refuse_command(tern_engine *engine, uint32_t nth)
{
	engine->call({.kind = Command::Kind::RefuseCommand, .value = nth});
}

void tern_engine_falsify(tern_engine *engine, uint32_t every, uint32_t seed)
{
	engine->call({.kind = Command::Kind::Falsify, .offset = seed, .value = every});
}

bool tern_engine_receive(tern_engine *engine, const void *frame, size_t size)
{
	return engine->push_received({static_cast<const std::byte *>(frame), size});
}

bool tern_engine_can_receive(tern_engine *engine)
{
	return engine->frames().can_receive();
}

const uint8_t *tern_engine_next_frame(tern_engine *engine, size_t *size)
{
	const tern::Frame *frame = engine->frames().next_sent();
	if (!frame)
		return nullptr;
	*size = frame->size;
	return reinterpret_cast<const uint8_t *>(frame->data);
}

void tern_engine_frame_done(tern_engine *engine)
{
	engine->frames().pop_sent();
}

uint64_t tern_engine_take_interrupts(tern_engine *engine, unsigned word)
{
	return engine->take_interrupts(word);
}
